// Moments between two steps of a supervisor. This program's ioctl, syscall and process_vm_readv stand before the C
// library's, so that a test can let something happen to the task exactly then: being killed after the supervisor looked
// at it, or getting a signal just before its answer.
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include <functional>
#include <optional>

namespace leafcutter::node::tests {

/// The call that was received last. Real kernel objects, so it may have gone.
struct Waiting {
  int listener = -1;
  seccomp_notif notification{};
  bool checked = false;  ///< of a look: it was found valid

  pid_t task() const { return static_cast<pid_t>(notification.pid); }
  /// False: its task does not wait any more. Waits for that, 5 s at most.
  bool has_gone() const;
};

enum class Moment {
  after_look,  ///< the task's memory was read, a descriptor of it copied, a folder of it opened, or it was found valid
  before_answer,  ///< of any kind
};

/// While it lives, `then` happens at the `which`-th such moment (from 1) of a call that `of` selects, once.
class AtMoment {
 public:
  AtMoment(Moment moment, unsigned which, std::function<bool(const seccomp_data&)> of,
           std::function<void(const Waiting&)> then);
  ~AtMoment();
  AtMoment(const AtMoment&) = delete;
  AtMoment& operator=(const AtMoment&) = delete;

  bool came() const;
};

}  // namespace leafcutter::node::tests
