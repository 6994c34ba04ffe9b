#include "peer_program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include "loopback.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr uid_t nobody = 65534;

/// Its standard output and error go to `log`. It ends with the test.
pid_t start_program(const Scratch& scratch, const Command& command, const std::string& log, User user) {
  std::vector<char*> arguments;
  for (const auto& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  const auto out = (scratch / log).string();
  const auto folder = scratch.path().string();
  const auto pid = ::fork();
  if (pid != 0) return pid;
  const int to = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
  ::dup2(to, 1);
  ::dup2(to, 2);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (user == User::ordinary && ::geteuid() == 0)
    if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(126);
  if (::chdir(folder.c_str()) != 0) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

/// Waits for its end; false when it is still there.
bool ended_within(pid_t pid, std::chrono::milliseconds limit, int& status) {
  const base::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd state{handle.get(), POLLIN, 0};
  if (::poll(&state, 1, static_cast<int>(limit.count())) != 1) return false;
  return ::waitpid(pid, &status, 0) == pid;
}

}  // namespace

Scratch::Scratch() {
  auto name = (std::filesystem::temp_directory_path() / "proxy-peers.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
  if (::geteuid() == 0 && ::chown(name.c_str(), nobody, nobody) != 0) throw std::runtime_error("chown failed");
}

Scratch::~Scratch() { std::filesystem::remove_all(path_); }

void Scratch::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
}

std::string Scratch::read(const std::string& name) const {
  std::error_code none;
  std::string text(std::filesystem::file_size(path_ / name, none), '\0');
  if (none) return "";
  std::ifstream in(path_ / name, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

Said run(const Scratch& scratch, const Command& command, User user) {
  const auto log = "said-" + std::filesystem::path(command[0]).filename().string();
  const auto pid = start_program(scratch, command, log, user);
  int status = 0;
  Said said;
  if (ended_within(pid, 50s, status)) {
    said.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } else {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  said.text = scratch.read(log);
  if (said.exit == 127) said.text += command[0] + " is not installed: see deploy/packages";
  return said;
}

Server::Server(const Scratch& scratch, const Command& command, std::uint16_t port, User user)
    : pid_(start_program(scratch, command, "served", user)) {
  int status = 0;
  const bool serves = eventually(
      [&] {
        Peer peer;
        return Peer::try_dial("127.0.0.1:" + std::to_string(port), peer) == 0 || ended_within(pid_, 0ms, status);
      },
      30s);
  EXPECT_TRUE(serves && status == 0) << command[0] << " does not serve: " << scratch.read("served")
                                     << (WEXITSTATUS(status) == 127 ? "not installed: see deploy/packages" : "");
}

Server::~Server() {
  ::kill(pid_, SIGINT);  // what ends postgres without waiting for its clients
  int status = 0;
  if (ended_within(pid_, 10s, status)) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace leafcutter::node::proxy
