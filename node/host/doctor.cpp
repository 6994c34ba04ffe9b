#include "node/host/doctor.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "node/host/remedy.hpp"
#include "node/host/tests.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

Capability conclude(const std::string& name, const TestReport& report) {
  if (report.seen()) return {name, true, report.observed, ""};
  return {name, false, std::string(report.step) + ": " + std::strerror(report.error), remedy_for(name, report.error)};
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

using SelfTest = TestReport (*)();

/// What only some faults need: their kinds name it.
constexpr std::pair<const char*, SelfTest> extra_tests[] = {{"time-namespace", test_time_namespace},
                                                            {"process-limit", test_process_limit}};

std::string kinds_that_need(const std::string& capability) {
  std::vector<std::string> names;
  for (const auto& kind : scenarios::fault_kinds())
    if (kind.capability == capability) names.push_back(kind.name);
  return base::join_names(names);
}

Capability examine_extra(const std::pair<const char*, SelfTest>& extra) {
  auto capability = conclude(extra.first, extra.second());
  capability.only_for = kinds_that_need(extra.first);
  return capability;
}

/// Clocks that would be below zero are refused by the kernel.
base::Status clocks_can_move(const scenarios::Fault& fault) {
  const auto by = scenarios::parse_offset(fault.params.value("by", ""));
  timespec up{};
  ::clock_gettime(CLOCK_MONOTONIC, &up);
  const auto since_boot = std::chrono::seconds(up.tv_sec);
  if (!by || since_boot + *by >= std::chrono::nanoseconds(0)) return base::ok();
  return base::Error{base::ErrorCode::unavailable,
                     fault.text() + ": the clock of this host shows " + base::format_duration(since_boot) +
                         " since it was started, and cannot be set back by more than that",
                     {}};
}

}  // namespace

std::vector<Capability> examine_host() {
  static constexpr std::pair<const char*, SelfTest> self_tests[] = {
      {"user-namespace", test_user_namespace}, {"network-namespace", test_network_namespace},
      {"mount-proc", test_mount_proc},         {"read-only-root", test_read_only_root},
      {"syscall-notify", test_syscall_notify}, {"process-read", test_process_read},
      {"pidfd-getfd", test_pidfd_getfd},       {"ipc", test_ipc},
  };
  std::vector<Capability> capabilities;
  for (const auto& [name, self_test] : self_tests) capabilities.push_back(conclude(name, self_test()));
  for (const auto& extra : extra_tests) capabilities.push_back(examine_extra(extra));
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  capabilities.push_back(examine_disk(failed ? "/tmp" : folder.string()));
  return capabilities;
}

base::Status can_carry_out(const scenarios::Plan& plan) {
  std::map<std::string, Capability> examined;
  for (const auto& fault : plan.faults) {
    const auto* kind = scenarios::fault_kind(fault.kind);
    const auto* extra = std::find_if(std::begin(extra_tests), std::end(extra_tests), [&](const auto& known) {
      return kind != nullptr && kind->capability == known.first;
    });
    if (extra == std::end(extra_tests)) continue;
    if (!examined.contains(extra->first)) examined[extra->first] = examine_extra(*extra);
    const auto& capability = examined[extra->first];
    if (!capability.seen)
      return base::Error{base::ErrorCode::unavailable,
                         fault.text() + " needs " + capability.name + ": " + capability.detail +
                             (capability.remedy.empty() ? "" : "; what would do: " + capability.remedy),
                         {}};
    if (fault.kind == "clock-offset")
      if (auto status = clocks_can_move(fault); !status) return status;
  }
  return base::ok();
}

Capability examine_disk(const std::string& folder, std::uint64_t bytes) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0)
    return {"disk-space", false, "look at " + folder + ": " + std::strerror(errno),
            "a folder that exists and can be read"};
  const auto room = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
  const auto detail = mebibytes(room) + " free in " + folder;
  if (room >= bytes) return {"disk-space", true, detail, ""};
  return {"disk-space", false, detail + ", " + mebibytes(bytes) + " wanted",
          "free some space there, or name another folder"};
}

}  // namespace leafcutter::node
