#include "node/leaf/process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "node/leaf/clone.hpp"
#include "node/leaf/isolation.hpp"
#include "node/syscalls/filter.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;

enum class Stage : int { begins, ended, network, proc, names, clocks, fork, folder, user, filter, exec };

/// What the init and the program tell through their socket: that the program is about to be executed, a wait status, or
/// the step that failed and errno. The kernel adds the sender's pid as the reader's namespace knows it.
struct Report {
  Stage stage = Stage::ended;
  int value = 0;
};

const char* text(Stage stage) {
  switch (stage) {
    case Stage::network: return "enter its network";
    case Stage::proc: return "mount /proc";
    case Stage::names: return "have its names resolved by the leaf";
    case Stage::clocks: return "move its clocks in a time namespace";
    case Stage::fork: return "fork";
    case Stage::folder: return "enter its folder";
    case Stage::user: return "enter a user namespace of its own";
    case Stage::filter: return "install the system call filter";
    default: return "execute";
  }
}

/// Everything that the child needs, prepared before: between clone and exec it may neither allocate nor lock.
struct Prepared {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* folder = nullptr;
  int network = -1;
  const std::vector<sock_filter>* filter = nullptr;
  std::string_view clock_offsets;  ///< empty: the host's clocks
  bool own_user = false;
  bool asks_resolver = false;
  const Hold* hold = nullptr;  ///< null: it is not held
  std::array<int, 4> pipes{};  ///< standard output, standard error, reports, filter socket (or -1)
};

constexpr int report_fd = 3, filter_fd = 4;

void tell(Stage stage, int value) {
  const Report report{stage, value};
  [[maybe_unused]] const auto written = ::write(report_fd, &report, sizeof report);
}

[[noreturn]] void fail(Stage stage, int error) {
  tell(stage, error);
  ::_exit(127);
}

/// Leaves standard input, output and error, the report socket and the filter socket, and no copy of any socket of the
/// leaf: a connection that the leaf closes must be closed.
void keep_descriptors(const Prepared& prepared) {
  std::array<int, 4> high{};
  for (std::size_t i = 0; i < high.size(); ++i)
    high[i] = prepared.pipes[i] < 0 ? -1 : ::fcntl(prepared.pipes[i], F_DUPFD, 100);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null != 0) ::dup2(null, 0);
  for (std::size_t i = 0; i < high.size(); ++i)
    if (high[i] >= 0) ::dup2(high[i], static_cast<int>(i) + 1);
  ::syscall(SYS_close_range, prepared.pipes[3] < 0 ? filter_fd : filter_fd + 1, ~0u, 0u);
}

/// Crashes are daily business here, and a core file a service's folder full of surprises. The soft limit only: a
/// service that wants one says `ulimit -c`. One byte is less than any core, and where the host pipes cores to a
/// program, which no limit of 0 prevents, the kernel takes it for "none" (core_pattern, RLIMIT_CORE = 1).
void limit_core_dumps() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max == 0) return;
  limit.rlim_cur = 1;
  ::setrlimit(RLIMIT_CORE, &limit);
}

/// Returns an errno or 0.
int write_own(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const auto written = ::write(fd, text.data(), text.size());
  const int error = written < 0 ? errno : 0;
  ::close(fd);
  return error;
}

/// Holds for what is forked from here on.
int move_clocks(std::string_view offsets) {
  return ::unshare(CLONE_NEWTIME) != 0 ? errno : write_own("/proc/self/timens_offsets", offsets);
}

/// The same user as before, counted apart.
int enter_own_user() {
  if (::unshare(CLONE_NEWUSER) != 0) return errno;
  if (const int error = write_own("/proc/self/setgroups", "deny"); error != 0) return error;
  if (const int error = write_own("/proc/self/uid_map", "1000 1000 1"); error != 0) return error;
  return write_own("/proc/self/gid_map", "1000 1000 1");
}

[[noreturn]] void run_program(const Prepared& prepared) {
  ::setsid();
  if (::chdir(prepared.folder) != 0) fail(Stage::folder, errno);
  if (prepared.own_user)
    if (const int error = enter_own_user(); error != 0) fail(Stage::user, error);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  limit_core_dumps();
  ::fcntl(report_fd, F_SETFD, FD_CLOEXEC);
  tell(Stage::begins, 0);
  if (!prepared.filter->empty()) {
    ::fcntl(filter_fd, F_SETFD, FD_CLOEXEC);
    if (const int error = install_filter(*prepared.filter, filter_fd, Keeper::parent); error != 0)
      fail(Stage::filter, error);
  }
  if (prepared.hold != nullptr) prepared.hold->wait();
  ::execve(prepared.program, prepared.argv, prepared.environment);
  fail(Stage::exec, errno);
}

[[noreturn]] void run_init(const Prepared& prepared) {
  const int entered = ::setns(prepared.network, CLONE_NEWNET);
  const int error = errno;
  keep_descriptors(prepared);
  if (entered != 0) fail(Stage::network, error);
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) fail(Stage::proc, errno);
  if (prepared.asks_resolver)
    if (const int failed = use_resolver(); failed != 0) fail(Stage::names, failed);
  if (!prepared.clock_offsets.empty())
    if (const int failed = move_clocks(prepared.clock_offsets); failed != 0) fail(Stage::clocks, failed);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // fork() would run handlers that take locks of threads that are not here.
  const pid_t program = prepared.filter->empty() ? ::_Fork() : fork_for_keeper();
  if (program < 0) fail(Stage::fork, errno);
  if (program == 0) run_program(prepared);
  for (const int fd : {0, 1, 2, filter_fd}) ::close(fd);
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    if (pid < 0 && errno != EINTR) ::_exit(70);
    if (pid != program) continue;
    tell(Stage::ended, status);
    ::_exit(0);
  }
}

std::string find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return name;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    const auto candidate = path.substr(begin, end - begin) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return name;  // execve says that there is no such file
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct Message {
  Report report;
  pid_t sender = 0;
};

/// The next report, without waiting. False: none is there.
bool receive(int socket, Message& out) {
  iovec part{&out.report, sizeof out.report};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  if (::recvmsg(socket, &header, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof out.report)) return false;
  for (auto* part_of = CMSG_FIRSTHDR(&header); part_of != nullptr; part_of = CMSG_NXTHDR(&header, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_CREDENTIALS) continue;
    ucred credentials{};
    std::memcpy(&credentials, CMSG_DATA(part_of), sizeof credentials);
    out.sender = credentials.pid;
  }
  return true;
}

struct Pipe {
  UniqueFd read, write;
};

base::Expected<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

}  // namespace

base::Expected<Process> Process::start(const Spawn& spawn) {
  auto output = make_pipe();
  if (!output) return output.error();
  auto errors = make_pipe();
  if (!errors) return errors.error();
  std::array<int, 2> channel = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) != 0)
    return base::system_error("socketpair for a program", errno);
  UniqueFd reports(channel[0]), telling(channel[1]);
  const int one = 1;
  ::setsockopt(reports.get(), SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
  std::array<int, 2> pair = {-1, -1};
  if (!spawn.filter.empty() && ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return base::system_error("socketpair for a filter", errno);
  UniqueFd ours(pair[0]), theirs(pair[1]);

  auto arguments = spawn.argv;
  std::vector<std::string> variables;
  for (const auto& [name, value] : spawn.environment) variables.push_back(name + "=" + value);
  const auto path = spawn.environment.find("PATH");
  const auto program = find_program(arguments.at(0), path == spawn.environment.end() ? "" : path->second);
  const auto argv = pointers(arguments);
  const auto environment = pointers(variables);
  std::optional<Hold> hold;
  if (spawn.conditions.any()) {
    auto made = Hold::make();
    if (!made) return made.error();
    hold.emplace(std::move(*made));
  }
  const auto offsets = spawn.conditions.clock_offset ? offsets_text(*spawn.conditions.clock_offset) : std::string();
  const Prepared prepared{program.c_str(),
                          argv.data(),
                          environment.data(),
                          spawn.folder.c_str(),
                          spawn.network,
                          &spawn.filter,
                          offsets,
                          spawn.conditions.own_user(),
                          spawn.asks_resolver,
                          hold ? &*hold : nullptr,
                          {output->write.get(), errors->write.get(), telling.get(), theirs.get()}};
  int handle = -1;
  clone_args args{};
  args.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&handle);
  args.exit_signal = SIGCHLD;
  const auto pid = clone_process(args);
  if (pid < 0) return base::system_error("clone for " + spawn.argv[0], errno);
  if (pid == 0) run_init(prepared);

  Process process;
  process.pid_ = pid;
  process.handle_.reset(handle);
  process.output_ = std::move(output->read);
  process.errors_ = std::move(errors->read);
  process.reports_ = std::move(reports);
  theirs.reset();
  if (!spawn.filter.empty()) {
    auto listener = receive_listener(ours.get());
    if (!listener) return process.never_began(listener.error());
    process.listener_.reset(*listener);
  }
  if (hold)
    if (auto status = process.impose_conditions(spawn.conditions, *hold); !status)
      return process.never_began(status.error());
  return process;
}

base::Status Process::impose_conditions(const StartConditions& conditions, const Hold& hold) {
  if (auto status = hold.await_held(handle_.get()); !status) return status.error();
  if (program() <= 0) return base::Error{base::ErrorCode::internal, "a held program has not said that it begins", {}};
  auto evidence = impose(conditions, program_);
  if (!evidence) return evidence.error();
  evidence_ = std::move(*evidence);
  hold.release();
  return base::ok();
}

/// What is left of it is taken away; it may have said itself why it could not begin.
base::Error Process::never_began(const base::Error& error) {
  kill();
  const auto ending = reap();
  if (ending.error.empty() || error.code == base::ErrorCode::unavailable) return error;
  return {base::ErrorCode::unavailable, ending.error, {}};
}

void Process::kill() const { ::syscall(SYS_pidfd_send_signal, handle_.get(), SIGKILL, nullptr, 0u); }

pid_t Process::program() {
  Message message;
  if (program_ == 0 && receive(reports_.get(), message) && message.report.stage == Stage::begins)
    program_ = message.sender;
  return program_;
}

Ending Process::reap() {
  int init_status = 0;
  while (::waitpid(pid_, &init_status, 0) < 0 && errno == EINTR) {
  }
  Ending ending;
  Message message;
  do {
    if (receive(reports_.get(), message)) continue;
    // The init was killed before it could tell: so was everything below it.
    ending.signal = WIFSIGNALED(init_status) ? WTERMSIG(init_status) : SIGKILL;
    return ending;
  } while (message.report.stage == Stage::begins);
  const auto& report = message.report;
  if (report.stage != Stage::ended) {
    ending.status = 127;
    ending.error = std::string("cannot ") + text(report.stage) + ": " + std::strerror(report.value);
  } else if (WIFSIGNALED(report.value)) {
    ending.signal = WTERMSIG(report.value);
  } else {
    ending.status = WEXITSTATUS(report.value);
  }
  return ending;
}

bool is_exiting(pid_t program) {
  const auto text = base::read_file("/proc/" + std::to_string(program) + "/stat");
  if (!text) return true;
  // pid (name) state ppid pgrp session tty tpgid flags ...; the name may hold anything.
  const auto end = text->rfind(')');
  char state = 'Z';
  unsigned flags = 0;
  if (end == std::string::npos ||
      std::sscanf(text->c_str() + end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
    return true;
  constexpr unsigned exiting = 0x4;  // PF_EXITING
  return state == 'Z' || state == 'X' || (flags & exiting) != 0;
}

std::map<std::string, std::string> program_environment(const std::string& home,
                                                       const std::map<std::string, std::string>& own) {
  auto environment = own;
  environment.emplace("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
  environment.emplace("HOME", home);
  environment.emplace("TMPDIR", "/tmp");
  environment.emplace("LANG", "C.UTF-8");
  return environment;
}

}  // namespace leafcutter::node
