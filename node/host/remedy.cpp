#include "node/host/remedy.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/text.hpp"

namespace leafcutter::node {
namespace {

/// Trimmed value of a sysctl; empty where this kernel has none.
std::string sysctl(const std::string& path) {
  auto text = base::read_file("/proc/sys/" + path);
  if (!text) return "";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

bool in_container() {
  return ::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0 ||
         ::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

std::string sentences(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& one : all) out += (out.empty() ? "" : "; or ") + one;
  return out;
}

std::string for_user_namespace(int error) {
  std::vector<std::string> ways;
  if (error == ENOSPC || sysctl("user/max_user_namespaces") == "0")
    ways.push_back("raise the limit: sysctl user.max_user_namespaces=10000 (it is " +
                   sysctl("user/max_user_namespaces") + ")");
  if (sysctl("kernel/unprivileged_userns_clone") == "0")
    ways.emplace_back("allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1");
  if (sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1")
    ways.emplace_back(
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for leafcutter with "
        "\"userns,\"");
  if (in_container())
    ways.emplace_back(
        "start the container with a seccomp profile that allows unshare and clone (docker run --security-opt "
        "seccomp=..., "
        "or in Kubernetes seccompProfile: Localhost)");
  if (error == EINVAL) ways.emplace_back("use a kernel with CONFIG_USER_NS");
  if (error == EUSERS) ways.emplace_back("run outside of so many nested user namespaces");
  if (ways.empty())
    ways.emplace_back(
        "see whether kernel.unprivileged_userns_clone, user.max_user_namespaces or "
        "kernel.apparmor_restrict_unprivileged_userns forbid user namespaces here");
  return sentences(ways);
}

std::string for_process_access() {
  std::vector<std::string> ways;
  const auto scope = sysctl("kernel/yama/ptrace_scope");
  if (scope == "2" || scope == "3") ways.push_back("sysctl kernel.yama.ptrace_scope=1 (it is " + scope + ")");
  if (in_container())
    ways.emplace_back(
        "start the container with --cap-add SYS_PTRACE, or a seccomp profile that allows "
        "process_vm_readv and pidfd_getfd");
  if (ways.empty())
    ways.emplace_back(
        "Linux 5.6 or newer, and no seccomp profile or security module that forbids looking at one's own children");
  return sentences(ways);
}

}  // namespace

std::string remedy_for(const std::string& capability, int error) {
  if (capability == "user-namespace") return for_user_namespace(error);
  if (capability == "network-namespace") {
    if (error == ENOSPC)
      return "raise the limit: sysctl user.max_net_namespaces=10000 (it is " + sysctl("user/max_net_namespaces") + ")";
    return for_user_namespace(error);
  }
  if (capability == "mount-proc") {
    if (error == EPERM)
      return "a container that masks parts of /proc forbids a new one: docker run --security-opt "
             "systempaths=unconfined, or "
             "procMount: Unmasked in Kubernetes; otherwise what user-namespace needs";
    return for_user_namespace(error);
  }
  if (capability == "read-only-root") {
    if (error == ENOSYS) return "Linux 5.12 or newer (mount_setattr)";
    return for_user_namespace(error);
  }
  if (capability == "syscall-notify") {
    if (error == EBUSY) return "run outside of the container runtime or sandbox that already listens to system calls";
    if (in_container()) return "start the container with a seccomp profile that allows seccomp(2) with a listener";
    return "Linux 5.5 or newer on x86-64 with CONFIG_SECCOMP_FILTER, and no other seccomp listener around this process";
  }
  if (capability == "process-read" || capability == "pidfd-getfd") return for_process_access();
  if (capability == "time-namespace") {
    if (error == ENOSPC)
      return "raise the limit: sysctl user.max_time_namespaces=10000 (it is " + sysctl("user/max_time_namespaces") +
             ")";
    if (error == EINVAL || error == ENOENT) return "Linux 5.6 or newer with CONFIG_TIME_NS";
    return for_user_namespace(error);
  }
  if (capability == "process-limit") {
    if (error == EOPNOTSUPP)
      return "run leafcutter as another user than root, whom the kernel exempts from limits of processes";
    return for_user_namespace(error);
  }
  if (capability == "ipc") return "a writable folder for temporary files with a short path: set TMPDIR";
  return "";
}

}  // namespace leafcutter::node
