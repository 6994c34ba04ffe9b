#include "node/runs/run.hpp"

#include <tuple>

namespace leafcutter::node::runs {

bool ProxySpec::same_as(const ProxySpec& other) const {
  const auto all = [](const ProxySpec& one) {
    const auto& l = one.limits;
    return std::tie(one.name, one.transport, one.listen, one.upstream, l.connections, l.sessions, l.memory_bytes,
                    l.direction_bytes, l.connect_timeout, l.session_idle);
  };
  return all(*this) == all(other);
}

bool Awaited::matches(const proxy::Event& event) const {
  return event.kind == kind && event.link == proxy && (fault.empty() || event.fault == fault) &&
         (!connection || event.connection == *connection) && (!cause || event.cause == *cause);
}

PhasePoint phase_at(const Run& run, std::chrono::nanoseconds since_start) {
  std::chrono::nanoseconds end{0};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const auto& duration = run.phases[i].duration;
    if (!duration) return {i, false, {}};
    end += *duration;
    if (since_start < end) return {i, false, end};
  }
  return {run.phases.empty() ? 0 : run.phases.size() - 1, true, {}};
}

}  // namespace leafcutter::node::runs
