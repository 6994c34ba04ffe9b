#include "node/host/doctor.hpp"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "node/host/remedy.hpp"
#include "node/host/tests.hpp"

namespace leafcutter::node {
namespace {

Capability conclude(const std::string& name, const TestReport& report) {
  if (report.seen()) return {name, true, report.observed, ""};
  return {name, false, std::string(report.step) + ": " + std::strerror(report.error), remedy_for(name, report.error)};
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::vector<Capability> examine_host() {
  static constexpr std::pair<const char*, TestReport (*)()> self_tests[] = {
      {"user-namespace", test_user_namespace}, {"network-namespace", test_network_namespace},
      {"mount-proc", test_mount_proc},         {"read-only-root", test_read_only_root},
      {"syscall-notify", test_syscall_notify}, {"process-read", test_process_read},
      {"pidfd-getfd", test_pidfd_getfd},       {"ipc", test_ipc},
  };
  std::vector<Capability> capabilities;
  for (const auto& [name, self_test] : self_tests) capabilities.push_back(conclude(name, self_test()));
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  capabilities.push_back(examine_disk(failed ? "/tmp" : folder.string()));
  return capabilities;
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
