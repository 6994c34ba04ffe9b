// What the dashboard of `leafcutter proxy` shows, as a value, and as the text of a screen.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace leafcutter::commands {

struct DashboardFault {
  std::string id, flow;
  std::uint64_t strikes = 0, passed_over = 0;
  std::chrono::nanoseconds delay{0};  ///< of all strikes
  bool active = true;
};

struct DashboardLink {
  std::string name, listen, upstream;
  bool udp = false;
  std::uint64_t active = 0, accepted = 0, struck_connections = 0, connect_failed = 0;
  double to_upstream_rate = 0, to_client_rate = 0;  ///< bytes a second
  std::vector<DashboardFault> faults;
};

struct Dashboard {
  std::string name, phase, notice;
  std::uint64_t seed = 0, dropped_records = 0;
  std::size_t phase_number = 1, phases = 1;
  std::chrono::nanoseconds elapsed{0};
  std::optional<std::chrono::nanoseconds> phase_left;  ///< nothing: until stopped
  std::vector<DashboardLink> links;
};

/// Lines of at most `width` columns, at most `height` of them.
std::string dashboard_text(const Dashboard& dashboard, std::size_t width, std::size_t height, bool colour);

}  // namespace leafcutter::commands
