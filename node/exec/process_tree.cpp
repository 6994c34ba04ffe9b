#include "node/exec/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "node/observe/thread_states.hpp"

namespace leafcutter::node {
namespace {

using TreeClock = std::chrono::steady_clock;

constexpr auto stop_patience = std::chrono::seconds(1);
constexpr int between_looks_ms = 2;

std::optional<ProcessId> look_at(pid_t pid) {
  const base::UniqueFd stat(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!stat) return std::nullopt;
  std::array<char, 1024> text{};
  const auto bytes = ::read(stat.get(), text.data(), text.size() - 1);
  if (bytes <= 0) return std::nullopt;
  // pid (name) state ppid ...; the name may hold anything. The time it was started is field 22.
  const auto* after = std::strrchr(text.data(), ')');
  ProcessId process;
  process.pid = pid;
  if (after == nullptr ||
      std::sscanf(after + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &process.state, &process.parent, &process.started) != 3)
    return std::nullopt;
  return process;
}

bool ended(char state) { return state == 'Z' || state == 'X'; }
std::pair<pid_t, unsigned long long> identity(const ProcessId& process) { return {process.pid, process.started}; }

}  // namespace

std::vector<ProcessId> processes_below(pid_t root) {
  std::multimap<pid_t, ProcessId> by_parent;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (proc != nullptr) {
    const auto* entry = ::readdir(proc.get());
    if (entry == nullptr) break;
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    if (const auto process = look_at(pid)) by_parent.emplace(process->parent, *process);
  }
  std::vector<ProcessId> below;
  const auto add = [&](pid_t parent) {
    const auto [from, to] = by_parent.equal_range(parent);
    for (auto child = from; child != to; ++child) below.push_back(child->second);
  };
  add(root);
  // A look at a changing table could in theory show a ring; what is below is never more than what was seen.
  for (std::size_t i = 0; i < below.size() && below.size() <= by_parent.size(); ++i) add(below[i].pid);
  return below;
}

bool signal_process(const ProcessId& process, int signal) {
  const base::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0u)));
  if (!handle) return false;
  // The number may be another's by now: the handle is of the one that has it, so that is asked.
  const auto now = look_at(process.pid);
  if (!now || now->started != process.started) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0u) == 0;
}

unsigned stop_below(pid_t root) {
  const auto deadline = TreeClock::now() + stop_patience;
  // Each was told to stop at least once; what is held within a call stops when it comes back.
  std::set<std::pair<pid_t, unsigned long long>> told;
  for (;;) {
    unsigned still = 0, moving = 0;
    for (const auto& process : processes_below(root)) {
      if (ended(process.state)) continue;
      const auto states = thread_states(folder_at(AT_FDCWD, "/proc/" + std::to_string(process.pid)).get());
      if (states.alive == 0) continue;
      const auto stands = states.moving == 0 && (states.stopped == states.alive || told.contains(identity(process)));
      if (stands) {
        ++still;
      } else if (signal_process(process, SIGSTOP)) {
        told.insert(identity(process));
        ++moving;
      }
    }
    if (moving == 0 || TreeClock::now() >= deadline) return still;
    ::poll(nullptr, 0, between_looks_ms);
  }
}

void continue_below(pid_t root) {
  // Also those that do not stand still: a task whose call waits for an answer stops only when it has one, and the
  // signal to stop must not be left for that moment.
  for (const auto& process : processes_below(root))
    if (!ended(process.state)) signal_process(process, SIGCONT);
}

bool end_children(std::chrono::milliseconds within, const std::function<void(pid_t, int status)>& told) {
  const auto deadline = TreeClock::now() + within;
  for (;;) {
    for (const auto& process : processes_below(::getpid()))
      if (!ended(process.state)) signal_process(process, SIGKILL);
    for (;;) {
      int status = 0;
      const auto pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return true;  // no child is left, and so nothing below
      if (pid == 0) break;
      told(pid, status);
    }
    if (TreeClock::now() >= deadline) return false;
    ::poll(nullptr, 0, between_looks_ms);
  }
}

}  // namespace leafcutter::node
