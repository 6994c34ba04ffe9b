// What the supervisor does at a site: counts it, reports it, and carries out the faults that strike there.
#pragma once

#include <linux/seccomp.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/syscalls/listener.hpp"
#include "node/syscalls/object.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {

/// Used by the supervisor's thread only. Never blocks, but for a call carried out on a task's behalf (bounded) and for
/// the crash of the service. Errors are the supervisor's own: io.
class Effects {
 public:
  using Clock = std::chrono::steady_clock;

  Effects(Listener& listener, const SupervisorContext& context) : listener_(listener), context_(context) {}

  /// A call that acts on a site.
  base::Status at_site(const seccomp_notif& notification, const Object& object);

  /// A call whose object could not be found out: it runs, nothing strikes, and the trace says so.
  base::Status at_unresolved(const seccomp_notif& notification, const Object& object);

  /// When the next held call is due.
  std::optional<Clock::time_point> next_due() const;
  base::Status release_due(Clock::time_point now);

  /// Lets every held call run at once; `why` goes into the trace.
  base::Status release_all(const std::string& why);

 private:
  struct Case {
    seccomp_notif notification{};
    Object object;
    std::uint32_t occurrence = 0;
    std::vector<SiteBook::Strike> delays;
    std::optional<SiteBook::Strike> ending;  ///< what happens after the delays; the call simply runs when there is none
    Clock::time_point since{};
  };

  base::Status hold(Case held);
  base::Status finish(const Case& at);
  base::Status fail_call(const Case& at);
  base::Status crash_before(const Case& at);
  base::Status crash_after(const Case& at);
  base::Status release(const Case& held, const std::string& how);
  base::Status let_run(std::uint64_t id);

  /// The `syscall` event; `more` is merged into it.
  void report(const Case& at, bool injected, const Value& more);
  Value evidence(const Case& at) const;

  Listener& listener_;
  const SupervisorContext& context_;
  std::multimap<Clock::time_point, Case> held_;
  std::map<std::string, std::uint64_t> unresolved_;  ///< by call
};

}  // namespace leafcutter::node
