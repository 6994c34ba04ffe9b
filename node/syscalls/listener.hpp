// The kernel's side of a supervisor: takes notifications and answers them. A task may be killed at any moment, and then
// its notification is gone: no error, only nothing to do.
#pragma once

#include <linux/seccomp.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

class Listener {
 public:
  explicit Listener(base::UniqueFd fd);

  int fd() const { return fd_.get(); }

  /// Waits for a notification. False: its task went in between, a signal came, or (from Linux 6.11) no task is left.
  /// Errors: io.
  base::Expected<bool> receive(seccomp_notif& into);

  /// Whether the task still waits in the same call: what was read of it since the notification was its own.
  bool valid(std::uint64_t id) const;

  /// Lets the call run, or ends it without. False when the task has gone. Errors: io.
  base::Expected<bool> let_run(std::uint64_t id);
  base::Expected<bool> fail(std::uint64_t id, int error);
  /// The call returns `value` without having run.
  base::Expected<bool> answer(std::uint64_t id, std::int64_t value);

 private:
  base::Expected<bool> send(seccomp_notif_resp answer);

  base::UniqueFd fd_;
  /// As large as this kernel's structs; empty when they are the ones we know.
  std::vector<std::uint64_t> request_, answer_;
};

}  // namespace leafcutter::node
