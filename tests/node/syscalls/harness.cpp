#include "harness.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/text.hpp"
#include "node/observe/event_watch.hpp"
#include "node/syscalls/filter.hpp"
#include "node/syscalls/supervisor.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node::tests {
namespace {

constexpr std::chrono::seconds patience{20};

/// From here on seccomp(2) answers as before Linux 5.19: EINVAL when it is asked for WAIT_KILLABLE_RECV.
void forget_killable_waits() {
  constexpr std::uint32_t flag = 1u << 5;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + sizeof(std::uint64_t)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog given{std::size(program), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &given) != 0) ::_exit(125);
}

/// Between fork and exec: nothing that allocates.
[[noreturn]] void become(const std::vector<sock_filter>& filter, int socket, int output, const Setting& setting,
                         char* const* argv) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, 1);
  if (!setting.working_folder.empty() && ::chdir(setting.working_folder.c_str()) != 0) ::_exit(126);
  if (setting.old_kernel) forget_killable_waits();
  if (install_filter(filter, socket) != 0) ::_exit(126);
  ::execvp(argv[0], argv);
  ::_exit(127);
}

void drain(int fd, std::string& into) {
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) into.append(buffer, static_cast<std::size_t>(n));
}

bool ended(pid_t pid, std::chrono::milliseconds limit) {
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return true;
  pollfd wanted{process.get(), POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace

std::vector<std::string> all_families() {
  std::vector<std::string> names;
  for (const auto& family : scenarios::syscall_families()) names.push_back(family.name);
  return names;
}

std::string program(const std::string& name) { return std::string(LEAFCUTTER_SYSCALL_PROGRAMS) + "/" + name; }

std::string contents(const std::string& path) {
  const auto text = base::read_file(path);
  return text ? *text : "<none>";
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::map<std::string, std::string> results(const std::string& output) {
  std::map<std::string, std::string> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    if (space != std::string::npos) out[line.substr(0, space)] = line.substr(space + 1);
  }
  return out;
}

bool Outcome::exited_well() const { return !timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::vector<Event> Outcome::of_kind(const std::string& kind) const {
  std::vector<Event> out;
  for (const auto& event : events)
    if (event.kind == kind) out.push_back(event);
  return out;
}

Value Outcome::fired() const {
  const auto all = of_kind(scenarios::events::fault_fired);
  return all.size() == 1 ? all.front().attrs : Value();
}

Value Outcome::undone() const {
  const auto all = of_kind(scenarios::events::fault_undone);
  return all.size() == 1 ? all.front().attrs : Value();
}

std::uint32_t Outcome::count(const std::string& family, const std::string& resource) const {
  for (const auto& event : of_kind(scenarios::events::sites))
    for (const auto& site : event.attrs.at("sites"))
      if (site.at(1) == family && site.at(2) == resource) return site.at(3);
  return 0;
}

std::size_t Outcome::sites() const {
  const auto all = of_kind(scenarios::events::sites);
  return all.empty() ? 0 : all.front().attrs.at("sites").size();
}

FilterPlan Setting::filter() const { return filter_plan({faults, {}, {}}, "shop", families, scope); }

Child start_child(const std::vector<std::string>& argv, const Setting& setting) {
  Child child;
  const auto filter = build_filter(setting.filter());
  if (!filter) {
    child.error = filter.error().message;
    return child;
  }
  int pair[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || ::pipe2(pipe, O_CLOEXEC) != 0) {
    child.error = "no sockets";
    return child;
  }
  base::UniqueFd mine(pair[0]), theirs(pair[1]), input(pipe[1]);
  child.output.reset(pipe[0]);
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  child.pid = ::fork();
  if (child.pid == 0) {
    ::close(mine.get());
    become(*filter, theirs.get(), input.get(), setting, words.data());
  }
  ::setpgid(child.pid, child.pid);
  theirs.reset();
  if (filter->empty()) return child;
  const auto listener = receive_listener(mine.get());
  if (listener)
    child.listener.reset(*listener);
  else
    child.error = listener.error().message;
  return child;
}

bool wait_child(pid_t pid, std::chrono::milliseconds limit, int& status) {
  const auto in_time = ended(pid, limit);
  if (!in_time) ::kill(-pid, SIGKILL);
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return in_time;
}

Outcome run(const std::vector<std::string>& argv, const Setting& setting) {
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  auto watch = EventWatch::create({setting.faults, {}, {}});
  if (!watch) {
    outcome.failure = watch.error().text();
    return outcome;
  }
  SiteBook* seen_by = nullptr;
  Recorder recorder([start] { return std::chrono::steady_clock::now() - start; },
                    [&](Event event) {
                      if (seen_by != nullptr) watch->see(event, *seen_by);
                      outcome.events.push_back(std::move(event));
                    });
  SiteBook book({setting.faults, {}, {}}, recorder);
  seen_by = &book;
  Activity activity;
  record_in_kernel(setting.filter(), book);
  auto child = start_child(argv, setting);
  if (!child.error.empty() || child.pid < 0) {
    outcome.failure = child.error;
    if (child.pid > 0) wait_child(child.pid, std::chrono::seconds(5), outcome.status);
    return outcome;
  }
  std::atomic<int> crashes = 0;
  std::mutex failure_mutex;
  std::thread reader([&] { drain(child.output.get(), outcome.output); });
  {
    std::unique_ptr<Supervisor> supervisor;
    if (child.listener) {
      SupervisorContext context{.service = "shop",
                                .data_folder = setting.data_folder,
                                .peers = setting.peers,
                                .families = setting.families,
                                .path_globs = setting.path_globs,
                                .event_limit = setting.event_limit,
                                .recorder = recorder,
                                .sites = book,
                                .activity = activity,
                                .crash =
                                    [&, pid = child.pid](bool power_lost) {
                                      ++crashes;
                                      if (power_lost) ++outcome.power_losses;
                                      ::kill(-pid, SIGKILL);
                                      ended(pid, patience);
                                    },
                                .image = setting.image,
                                .failed =
                                    [&](const std::string& why) {
                                      const std::lock_guard lock(failure_mutex);
                                      outcome.failure = why;
                                    }};
      if (setting.can_stop) {
        context.stop = [&, pid = child.pid] {
          ++outcome.stops;
          return ::kill(-pid, SIGSTOP) == 0 ? 1u : 0u;
        };
        context.go_on = [&, pid = child.pid] {
          if (++outcome.goings_on == outcome.stops) ::kill(-pid, SIGCONT);
        };
      }
      supervisor = std::make_unique<Supervisor>(std::move(child.listener), std::move(context));
    }
    outcome.timed_out = !wait_child(child.pid, patience, outcome.status);
  }
  ::kill(-child.pid, SIGKILL);  // grandchildren that would keep the output open
  reader.join();
  book.finish();
  outcome.crashes = crashes;
  return outcome;
}

scenarios::Fault fault(const std::string& kind, const std::string& family, const std::string& resource,
                       std::uint32_t occurrence, Value params) {
  return {kind, {"shop", family, resource}, occurrence, std::move(params)};
}

scenarios::Fault rule(const std::string& kind, const std::string& family, Value params, scenarios::Aim aim) {
  return {kind, {"shop", family, ""}, 1, std::move(params), std::move(aim)};
}

}  // namespace leafcutter::node::tests
