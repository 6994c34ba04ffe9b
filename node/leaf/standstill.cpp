#include "node/leaf/standstill.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>

#include "node/observe/thread_states.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;
using std::chrono::steady_clock;

/// A stopped thread is caught at its next step out of the kernel, which a processor that is taken may put off.
constexpr std::chrono::seconds standstill_patience{2};
constexpr int look_again_ms = 1;

bool send(int process, int signal) { return ::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0u) == 0; }

}  // namespace

base::Expected<std::shared_ptr<Standstill>> Standstill::of(pid_t init) {
  UniqueFd folder(::open(("/proc/" + std::to_string(init)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return base::system_error("open the first process of a service in /proc", errno);
  return std::shared_ptr<Standstill>(new Standstill(std::move(folder)));
}

/// The service's own /proc, which shows its processes and no others. Until that is mounted there is none: what is seen
/// in its place is ours, with the whole leaf in it.
UniqueFd Standstill::processes() const {
  auto proc = folder_at(init_.get(), "root/proc");
  struct stat ours {
  }, theirs{};
  if (!proc || ::stat("/proc", &ours) != 0 || ::fstat(proc.get(), &theirs) != 0 || ours.st_dev == theirs.st_dev)
    return {};
  return proc;
}

/// Stops those that nobody stopped yet, the newest first: that one makes the next. How many that were.
unsigned Standstill::stop_new(int proc) {
  unsigned fresh = 0;
  const auto pids = numbers_in(proc);
  for (auto pid = pids.rbegin(); pid != pids.rend(); ++pid) {
    if (*pid == 1 || signalled_.contains(*pid) || by_themselves_.contains(*pid)) continue;
    const auto process = folder_at(proc, std::to_string(*pid));
    if (!process) continue;
    const auto states = thread_states(process.get());
    if (states.alive == 0) continue;
    if (states.stopped == states.alive) {
      by_themselves_.insert(*pid);
    } else if (send(process.get(), SIGSTOP)) {
      signalled_.insert(*pid);
      ++fresh;
    }
  }
  return fresh;
}

/// Looks at all of them, and says again that they stop to those that move: a number may have been given to another
/// process since. Looking takes longer than making a process does, so nobody new is looked for here.
Standstill::Look Standstill::look(int proc) {
  Look seen;
  for (const auto pid : numbers_in(proc)) {
    if (pid == 1 || by_themselves_.contains(pid)) continue;
    const auto process = folder_at(proc, std::to_string(pid));
    if (!process) continue;
    const auto states = thread_states(process.get());
    if (states.alive == 0) continue;
    ++seen.count;
    if (states.moving == 0) continue;
    ++seen.moving;
    send(process.get(), SIGSTOP);
  }
  return seen;
}

unsigned Standstill::stop() {
  const std::lock_guard lock(mutex_);
  const auto proc = processes();
  if (!proc) return 0;
  if (holders_ == 0) {
    signalled_.clear();
    by_themselves_.clear();
  }
  // A process that is about to be stopped may still have made another: it is over when everything was seen to stand,
  // and a listing after that has nothing new.
  const auto deadline = steady_clock::now() + standstill_patience;
  bool standing = false;
  Look seen;
  while (!standing && steady_clock::now() < deadline) {
    while (stop_new(proc.get()) > 0 && steady_clock::now() < deadline) {
    }
    seen = look(proc.get());
    standing = seen.moving == 0 && stop_new(proc.get()) == 0;
    if (seen.moving > 0) ::poll(nullptr, 0, look_again_ms);
  }
  if (!standing) {
    if (holders_ == 0) static_cast<void>(let_go(proc.get()));
    return 0;
  }
  if (seen.count > 0) ++holders_;
  return seen.count;
}

unsigned Standstill::let_go(int proc) const {
  unsigned running = 0;
  for (const auto pid : numbers_in(proc)) {
    if (pid == 1 || by_themselves_.contains(pid)) continue;
    const auto process = folder_at(proc, std::to_string(pid));
    if (!process || thread_states(process.get()).alive == 0 || !send(process.get(), SIGCONT)) continue;
    // The signal itself makes it run: there is nothing to wait for.
    const auto states = thread_states(process.get());
    if (states.alive > 0 && states.stopped == 0) ++running;
  }
  return running;
}

unsigned Standstill::go_on() {
  const std::lock_guard lock(mutex_);
  if (holders_ == 0 || --holders_ > 0) return 0;
  const auto proc = processes();
  return proc ? let_go(proc.get()) : 0;
}

void Standstill::ended() {
  std::vector<std::function<void()>> told;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    told.swap(told_);
  }
  for (const auto& tell : told) tell();
}

bool Standstill::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Standstill::on_ended(std::function<void()> told) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      told_.push_back(std::move(told));
      return;
    }
  }
  told();
}

}  // namespace leafcutter::node
