#include "node/host/actions/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/text.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;

/// A pid file is written by a process that is there already: it may be older by this much and no more.
constexpr double start_slack_seconds = 2.0;

Error no_process(const std::string& why) { return {ErrorCode::unavailable, why, {}}; }

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// When it was started, in seconds since 1970.
double started_at(const HostProcess& process) {
  const auto since_boot = static_cast<double>(process.started) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + since_boot;
}

base::UniqueFd handle_of(pid_t pid) { return base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u))); }

bool is_worker(pid_t pid, const std::string& state_folder, const std::string& id) {
  const auto words = base::read_file("/proc/" + std::to_string(pid) + "/cmdline");
  if (!words) return false;
  const auto wanted = std::string(1, '\0') + worker_word + '\0' + state_folder + '\0' + id + '\0';
  if (words->find(wanted) == std::string::npos) return false;
  struct stat about {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &about) == 0 && about.st_uid == ::geteuid();
}

}  // namespace

std::optional<HostProcess> host_process(pid_t pid) {
  const auto text = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // pid (name) state ppid pgrp session ...; the name may hold anything. The time it was started is field 22.
  const auto open = text->find('('), close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  HostProcess out;
  out.pid = pid;
  out.name = text->substr(open + 1, close - open - 1);
  unsigned long long started = 0;
  if (std::sscanf(text->c_str() + close + 1,
                  " %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &out.state,
                  &out.session, &started) != 3)
    return std::nullopt;
  out.started = started;
  return out;
}

base::Expected<HeldProcess> held_process(const std::string& pid_file, const std::string& name) {
  const base::UniqueFd file(::open(pid_file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return no_process("pid file " + pid_file + ": " + std::strerror(errno));
  struct stat about {};
  char text[32] = {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || ::read(file.get(), text, sizeof text - 1) <= 0)
    return no_process("pid file " + pid_file + " is no file with a number in it");
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), pid);
  if (error != std::errc{} || (*end != '\0' && *end != '\n') || pid < 2)
    return no_process("pid file " + pid_file + " holds no process's number");
  HeldProcess out;
  out.handle = handle_of(pid);
  const auto process = out.handle ? host_process(pid) : std::nullopt;
  const auto which = "process " + std::to_string(pid) + " of " + pid_file;
  if (!process || process->state == 'Z') return no_process(which + " has gone");
  if (process->name != name)
    return no_process(which + " is called \"" + process->name + "\", not \"" + name +
                      "\": the file is of an earlier one");
  const auto written = static_cast<double>(about.st_mtim.tv_sec) + static_cast<double>(about.st_mtim.tv_nsec) / 1e9;
  if (started_at(*process) > written + start_slack_seconds)
    return no_process(which + " was started after the file was written: its number is another's now");
  out.process = *process;
  return out;
}

bool signal_process_of(pid_t pid, std::uint64_t started, int signal) {
  const auto handle = handle_of(pid);
  const auto now = handle ? host_process(pid) : std::nullopt;
  if (!now || now->started != started) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0u) == 0;
}

std::vector<HostProcess> workers_of(const std::string& state_folder, const std::string& id,
                                    const std::optional<HostProcess>& session_leader) {
  std::vector<HostProcess> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (proc != nullptr) {
    const auto* entry = ::readdir(proc.get());
    if (entry == nullptr) break;
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 1 || pid == ::getpid()) continue;
    const auto process = host_process(pid);
    if (!process || process->state == 'Z' || process->state == 'X') continue;
    // A session's number is not given again while somebody is in it, and nobody is in one before its leader was.
    const bool in_session = session_leader && process->session == session_leader->pid &&
                            process->started >= session_leader->started &&
                            (pid != session_leader->pid || process->started == session_leader->started);
    if (in_session || is_worker(pid, state_folder, id)) out.push_back(*process);
  }
  return out;
}

}  // namespace leafcutter::node::host
