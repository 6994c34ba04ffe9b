#include "node/host/actions/execute.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node::host {
namespace {

using base::UniqueFd;
using ExecuteClock = std::chrono::steady_clock;

constexpr std::size_t most_output = 64 * 1024;
constexpr auto after_end = std::chrono::milliseconds(200);  ///< for output of what is left in its group

struct PipeEnds {
  UniqueFd read, write;
};

bool open_pipe(PipeEnds& out) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  out.read.reset(ends[0]);
  out.write.reset(ends[1]);
  return true;
}

/// Everything that the child needs, made before it is: it must not allocate.
struct ChildPlan {
  std::vector<std::string> texts;
  std::vector<char*> argv, envp;
  const char* folder = nullptr;
  int program = -1;  ///< executed by descriptor when it was digested
  int output = -1, failed = -1, null = -1;
  pid_t parent = 0;
  bool fresh_network = false, own_session = true;
  std::array<char, 32> uid_map{};
};

[[noreturn]] void become_command(const ChildPlan& plan) {
  const auto fail = [&](int error) {
    const auto written = ::write(plan.failed, &error, sizeof error);
    ::_exit(written > 0 ? 126 : 127);
  };
  if (plan.own_session ? ::setsid() < 0 : ::setpgid(0, 0) < 0) fail(errno);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);
  if (plan.fresh_network) {
    const bool root = ::geteuid() == 0;
    if (::unshare(root ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER) != 0) fail(errno);
    if (!root) {
      const int map = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
      if (map < 0 || ::write(map, plan.uid_map.data(), std::strlen(plan.uid_map.data())) < 0) fail(errno);
    }
  }
  sigset_t none;
  ::sigemptyset(&none);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(plan.null, 0) < 0 || ::dup2(plan.output, 1) < 0 || ::dup2(plan.output, 2) < 0) fail(errno);
  if (::chdir(plan.folder) != 0) fail(errno);
  if (plan.program >= 0) {
    ::fcntl(plan.program, F_SETFD, 0);  // a script's interpreter opens it again
    ::fexecve(plan.program, plan.argv.data(), plan.envp.data());
  } else {
    ::execve(plan.argv[0], plan.argv.data(), plan.envp.data());
  }
  fail(errno);
  ::_exit(127);
}

CommandEnd not_executed(const std::string& why) { return {CommandEnd::How::not_executed, 0, why, {}}; }

/// Reads and keeps what fits; false at the end.
bool take_output(int fd, std::string& out) {
  std::array<char, 8192> buffer{};
  const auto n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  out.append(buffer.data(), std::min(static_cast<std::size_t>(n), most_output - out.size()));
  return true;
}

int milliseconds_until(ExecuteClock::time_point when) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(when - ExecuteClock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

/// Waits for the child, reads what it says, and kills its group at the deadline.
CommandEnd attend(pid_t child, int pidfd, UniqueFd output, const CommandLine& line, int stop) {
  CommandEnd end;
  bool told = false, ended = false;
  auto limit = ExecuteClock::now() + line.within;
  while (!ended || output) {
    std::array<pollfd, 3> watched = {
        {{ended ? -1 : pidfd, POLLIN, 0}, {output ? output.get() : -1, POLLIN, 0}, {told ? -1 : stop, POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), milliseconds_until(limit)) < 0 && errno != EINTR) break;
    if (watched[1].revents != 0 && !take_output(output.get(), end.output)) output.reset();
    if (!ended && watched[0].revents != 0) {
      ended = true;
      // Not reaped yet, so its number is still the group's: what it left there must not hold our end of the pipe.
      limit = ExecuteClock::now() + after_end;
    }
    const bool over = ExecuteClock::now() >= limit;
    if (!ended && (over || watched[2].revents != 0)) {
      if (told) break;  // not even that: lost
      told = true;
      ::kill(-child, SIGKILL);
      ::kill(child, SIGKILL);
      limit = ExecuteClock::now() + std::chrono::seconds(5);
    } else if (ended && over) {
      break;
    }
  }
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = ::waitpid(child, &status, ended ? 0 : WNOHANG)) < 0 && errno == EINTR) {
  }
  if (reaped != child) return end;  // lost
  end.how = told ? CommandEnd::How::timed_out : WIFEXITED(status) ? CommandEnd::How::exited : CommandEnd::How::killed;
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

}  // namespace

nlohmann::json to_json(const CommandLine& line) {
  auto environment = nlohmann::json::array();
  for (const auto& [name, value] : line.environment) environment.push_back({name, value});
  return {{"argv", line.argv},
          {"sha256", line.sha256},
          {"environment", environment},
          {"folder", line.folder},
          {"within", line.within.count()}};
}

CommandLine command_line_from(const nlohmann::json& json) {
  CommandLine line;
  line.argv = json.at("argv").get<std::vector<std::string>>();
  line.sha256 = json.at("sha256").get<std::string>();
  for (const auto& pair : json.at("environment"))
    line.environment.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
  line.folder = json.at("folder").get<std::string>();
  line.within = std::chrono::nanoseconds(json.at("within").get<std::int64_t>());
  return line;
}

std::string CommandEnd::text() const {
  switch (how) {
    case How::not_executed: return "nothing was executed: " + error;
    case How::exited: return "exit status " + std::to_string(status);
    case How::killed: return "killed by signal " + std::to_string(status);
    case How::timed_out: return "killed at its deadline";
    case How::lost: return "it is not known how it ended";
  }
  return "?";
}

CommandEnd execute(const CommandLine& line, const ExecuteOptions& options) {
  if (line.argv.empty()) return not_executed("no program");
  ChildPlan plan;
  UniqueFd program;
  if (!line.sha256.empty()) {
    program.reset(::open(line.argv[0].c_str(), O_RDONLY | O_CLOEXEC));
    if (!program) return not_executed(base::system_error(line.argv[0], errno).message);
    const auto bytes = base::read_file("/proc/self/fd/" + std::to_string(program.get()));
    if (!bytes) return not_executed(bytes.error().message);
    if (const auto found = base::sha256(*bytes); found != line.sha256)
      return not_executed(line.argv[0] + " has the digest " + found + ", the profile pins " + line.sha256);
    plan.program = program.get();
  }
  PipeEnds output, failed;
  const UniqueFd null(options.input.empty() ? ::open("/dev/null", O_RDONLY | O_CLOEXEC)
                                            : static_cast<int>(::memfd_create("input", MFD_CLOEXEC)));
  if (null && !options.input.empty() &&
      (!base::write_at(null.get(), options.input, 0, "input") || ::lseek(null.get(), 0, SEEK_SET) != 0))
    return not_executed("its input cannot be kept");
  if (!null || !open_pipe(output) || !open_pipe(failed)) return not_executed(base::system_error("pipe", errno).message);
  plan.texts = line.argv;
  for (const auto& [name, value] : line.environment) plan.texts.push_back(name + "=" + value);
  for (std::size_t i = 0; i < plan.texts.size(); ++i)
    (i < line.argv.size() ? plan.argv : plan.envp).push_back(plan.texts[i].data());
  plan.argv.push_back(nullptr);
  plan.envp.push_back(nullptr);
  plan.folder = line.folder.c_str();
  plan.output = output.write.get();
  plan.failed = failed.write.get();
  plan.null = null.get();
  plan.parent = ::getpid();
  plan.fresh_network = options.fresh_network;
  plan.own_session = options.own_session;
  const auto map = "0 " + std::to_string(::geteuid()) + " 1";
  map.copy(plan.uid_map.data(), plan.uid_map.size() - 1);
  const pid_t child = ::fork();
  if (child < 0) return not_executed(base::system_error("fork", errno).message);
  if (child == 0) become_command(plan);
  output.write.reset();
  failed.write.reset();
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0u)));
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(failed.read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got == sizeof error) {
    ::waitpid(child, nullptr, 0);
    return not_executed(base::system_error(line.argv[0], error).message);
  }
  return attend(child, pidfd.get(), std::move(output.read), line, options.stop);
}

}  // namespace leafcutter::node::host
