// What the supervisor does at a call: counts its site, reports it, and carries out the faults that strike there. First
// everything that makes it wait, one after the other; then the first fault of the plan that can end it.
#pragma once

#include <linux/seccomp.h>
#include <poll.h>

#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/syscalls/listener.hpp"
#include "node/syscalls/object.hpp"
#include "node/syscalls/passing.hpp"
#include "node/syscalls/perform.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {

/// A duration among a fault's parameters; nothing of it is 0.
std::chrono::nanoseconds duration_parameter(const scenarios::Fault& fault, const std::string& name);

template <class Duration>
std::int64_t whole_milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

/// What a call does to the bytes in use on a disk.
struct SpaceUse {
  std::uint64_t grows = 0;    ///< bytes more
  std::uint64_t gives = 0;    ///< bytes less
  std::uint64_t carries = 0;  ///< of a write: bytes in all; the first ones may be within the file, and use none
  bool divisible = false;     ///< it can be carried out in part
  bool new_name = false;

  bool fits(std::uint64_t left) const { return grows <= left && !(new_name && left == 0); }
};

/// Used by the supervisor's thread only. Never blocks, but for a call carried out on a task's behalf (bounded) and for
/// the crash of the service. Errors are the supervisor's own, and the image's: io.
class Effects {
 public:
  using Clock = std::chrono::steady_clock;

  Effects(Listener& listener, const SupervisorContext& context, const ObjectNames& names);

  /// A call on what was met before, and passes: true when it was answered.
  base::Expected<bool> at_known(const seccomp_notif& notification) {
    return knows_task(notification.pid) ? base::Expected<bool>(false) : passing_.lets_run(notification);
  }

  /// A call that a signal had interrupted and that comes again: true when it is one, and was seen to.
  base::Expected<bool> at_again(const seccomp_notif& notification);

  /// A call on what no rule can strike.
  base::Status at_no_site(const seccomp_notif& notification, const Object& object);

  /// A call that acts on a site, or that a rule may select.
  base::Status at_call(const seccomp_notif& notification, Object&& object);

  /// A call that moves bytes from one object to the other.
  base::Status at_both(const seccomp_notif& notification, Object&& from, Object&& to);

  /// A call whose object could not be found out: it runs, nothing strikes, and the trace says so.
  base::Status at_unresolved(const seccomp_notif& notification, const Object& object);

  bool holds_calls() const { return !held_.empty(); }

  /// When the next held call is due.
  std::optional<Clock::time_point> next_due() const;
  base::Status release_due(Clock::time_point now);

  /// Descriptors that some call waits to be readable; `release_ready` is told which of them are.
  void add_awaited(std::vector<pollfd>& into) const;
  base::Status release_ready(const std::vector<pollfd>& polled);

  /// An event was seen that may release what is held.
  base::Status release_seen();

  /// Lets every held call run at once; `why` goes into the trace.
  base::Status release_all(const std::string& why);

 private:
  using Strike = SiteBook::Strike;
  static constexpr std::int64_t unlimited_bytes = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint64_t all_bytes = std::numeric_limits<std::uint64_t>::max();
  static constexpr const char* full_first = "the disk of another fault is full first";

  /// What a call is answered with that does not run, and the strike that this makes real.
  struct Answer {
    int error = 0;  ///< 0: it returns `value`
    std::int64_t value = 0;
    std::optional<std::size_t> fault = {};  ///< of the plan
    Value event = {};                       ///< its `syscall` event; null: beyond the limit
    Value proof = {};
  };
  /// What was read for a task that could not be told of it yet.
  struct Taken {
    Received got;
    std::uint64_t whole = 0;  ///< how many bytes there were to read
  };

  struct Case {
    seccomp_notif notification{};
    Object object;
    std::uint32_t occurrence = 0;
    std::vector<Strike> waits;    ///< the first one is under way while the case is held
    std::vector<Strike> endings;  ///< what may end the call, in plan order; it simply runs when none does
    Clock::time_point since{};    ///< of the wait that is under way
    std::uint64_t releases = 0;   ///< of its hold, when it began
    base::UniqueFd awaited;       ///< what must be readable before anything can be said of the call
    std::uint64_t pauses = 0;     ///< of the service, when the call came
    bool late = false;            ///< the lateness of its error is over
    bool told = false;            ///< its own `syscall` event was recorded
    std::optional<Taken> taken;
    std::optional<Answer> answer;  ///< it is decided
    std::unique_ptr<Case> then;    ///< the call's other object: what strikes there, when nothing here ended it
    std::vector<std::pair<std::size_t, SpaceUse>> space;  ///< by fault: what the call uses of its bytes when it runs
    std::string others;                                   ///< endings that another one came before
    std::string unable;                                   ///< endings that could not be carried out, and why
  };
  enum class Ended {
    yes,
    no,    ///< it cannot strike this call: the next one may
    held,  ///< not yet: the case is held
    gone,  ///< nobody waits for the answer any more
  };
  struct Interrupted {
    Case at;
    unsigned others_left = 0;  ///< further calls of its task before it is forgotten
    std::uint64_t number = 0;  ///< of all that were interrupted
  };

  // effects.cpp
  /// Nothing has to be looked at, told to anybody or recorded when nothing strikes: true of nearly every call, and the
  /// task waits.
  bool passes_unseen(const Object& object, std::uint32_t occurrence) const;
  bool within_limit(std::uint32_t occurrence) const;
  SiteBook::Visit visit(const Object& object);
  Case make_case(const seccomp_notif& notification, Object&& object, SiteBook::Visit&& visit) const;
  base::Status begin(Case at);
  base::Status go_on(Case at);
  base::Status finish(Case at);
  base::Expected<Ended> end_by(Case& at, const Strike& strike);
  base::Expected<Ended> fail_call(Case& at, const Strike& strike);
  base::Expected<Ended> crash_before(Case& at, const Strike& strike);
  base::Expected<Ended> crash_after(Case& at, const Strike& strike);
  void report_unresolved(const Object& object, const std::string& why);
  base::Status run(Case at);
  /// What it dials may be refused even so.
  base::Status let_run(const seccomp_notif& notification);
  /// The same; true when the answer was taken.
  base::Expected<bool> let_run_unless_refused(const seccomp_notif& notification);
  base::Expected<Ended> cannot(Case& at, const Strike& strike, const std::string& why) const;
  /// Gives the answer that makes the strike real, and records both in the same moment: what nobody took never struck.
  base::Expected<Ended> strike_with(Case& at, const Strike& strike, Answer answer, Value effect, Value proof);
  /// Of a call that nothing strikes, and that does not run by itself.
  base::Expected<Ended> end_with(Case& at, Answer answer);
  base::Expected<Ended> give(Case& at);
  Request request(const Case& at, const Target& target) const;
  /// Carries the call out for the task; what that made durable is told to the image.
  base::Expected<Performed> carry_out(const Case& at, const Request& request);
  /// The `syscall` event; `more` is merged into it. Null: it is not recorded.
  Value event_of(const Case& at, bool injected, Value more);
  void report(Case& at, bool injected, Value more = {});
  bool is_reported(const Case& at, bool injected, bool with_detail);
  Value evidence(const Case& at) const;
  bool valid(const Case& at) const { return listener_.valid(at.notification.id); }
  static Target target(const Case& at) { return Target(static_cast<pid_t>(at.notification.pid)); }

  // effects_again.cpp
  /// The task has gone, or a signal took it out of its call: then the same call comes again. After more than so many
  /// other calls of its task it does not.
  base::Status remember(Case at, unsigned calls_between = 64);
  /// The call was let run, and a signal to stop that came while it was held makes the kernel begin it again.
  bool begins_again(const Case& at) const;
  bool knows_task(std::uint32_t task) const;

  // effects_time.cpp
  /// Until when the first wait of the case holds it; nothing when it does not strike.
  base::Expected<std::optional<Clock::time_point>> begin_wait(Case& at);
  void end_wait(Case& at, const std::string& how);
  base::Expected<std::optional<Clock::time_point>> slow_down(Case& at, const Strike& strike);
  std::optional<Clock::time_point> pause(Case& at, const Strike& strike);
  base::Expected<Ended> skip_sleep(Case& at, const Strike& strike);
  base::Status resume(std::multimap<Clock::time_point, Case>::iterator which, const std::string& how);

  // effects_bytes.cpp
  /// Until when the call waits for its bytes; nothing when it need not.
  std::optional<Clock::time_point> await_bytes(Case& at) const;
  base::Expected<std::uint64_t> carried_bytes(const Case& at) const;
  base::Expected<Ended> cut_short(Case& at, const Strike& strike);
  base::Expected<Ended> tear(Case& at, const Strike& strike);
  base::Expected<Ended> corrupt(Case& at, const Strike& strike);
  base::Expected<Ended> corrupt_on_the_way(Case& at, const Strike& strike, std::uint64_t whole);
  /// Reads at most `most` bytes for the task; false: `unable` says why not.
  base::Expected<bool> take_bytes(Case& at, const Strike& strike, const Request& request);
  base::Expected<Ended> answer_fault(Case& at, const Strike& strike);

  // effects_space.cpp
  void add_space_faults(Case& at) const;
  bool is_on_disk(const Object& object, const scenarios::Fault& fault) const;
  base::Expected<Ended> run_out_of_space(Case& at, const Strike& strike);
  /// Before the call is carried out here, with `at_most` bytes: what it uses, wherever it writes. False: one of its
  /// disks is full first.
  bool find_room(Case& at, std::uint64_t at_most) const;
  base::Expected<SpaceUse> space_use(const Case& at, std::uint64_t at_most) const;
  /// The call went through: with so many bytes, where it carries any.
  void account_space(const Case& at, std::int64_t carried);

  // effects_sync.cpp
  base::Expected<Ended> lose_sync(Case& at, const Strike& strike);
  base::Expected<Ended> lie_about_sync(Case& at, const Strike& strike);
  /// Before the call runs by itself. True when it must not any more: it was carried out here, and answered.
  base::Expected<bool> tell_image(Case& at);
  /// The call was carried out, with this result: what became durable by it.
  base::Status tell_image_of(const Case& at, std::int64_t result);

  Listener& listener_;
  const SupervisorContext& context_;
  const ObjectNames& names_;
  Passing passing_;
  std::multimap<Clock::time_point, Case> held_;
  std::multimap<std::uint32_t, Interrupted> interrupted_;  ///< by task
  std::uint64_t interruptions_ = 0;
  std::uint64_t pauses_ = 0;
  std::map<std::string, std::uint64_t> unresolved_;                      ///< by call
  std::map<std::string, std::uint64_t> unstruck_;                        ///< by call: what a fault could not strike
  std::map<std::pair<std::string, std::string>, std::uint64_t> struck_;  ///< by family and resource
  std::map<std::size_t, Clock::time_point> busy_until_;                  ///< of slow faults
  std::vector<std::size_t> space_faults_;                                ///< of this service, in plan order
};

}  // namespace leafcutter::node
