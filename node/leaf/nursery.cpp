#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "base/unique_fd.hpp"
#include "node/leaf/clone.hpp"
#include "node/leaf/launcher.hpp"
#include "node/leaf/leaf.hpp"
#include "node/leaf/outlet.hpp"
#include "node/leaf/wire.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;
using protocols::Value;

constexpr std::uint64_t leaf_namespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

pid_t clone_with(std::uint64_t flags) {
  clone_args args{};
  args.flags = flags;
  args.exit_signal = SIGCHLD;
  return clone_process(args);
}

/// What a leaf writes to its standard error: only its last line is of interest, when it did not end well.
class LastLine {
 public:
  void read(int fd) {
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto n = ::read(fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      text_.append(buffer.data(), static_cast<std::size_t>(n));
      if (text_.size() > 2 * limit) text_.erase(0, text_.size() - limit);
    }
  }
  std::string line() const {
    const auto end = text_.find_last_not_of("\n\r ");
    if (end == std::string::npos) return "";
    const auto begin = text_.find_last_of('\n', end);
    return text_.substr(begin == std::string::npos ? 0 : begin + 1,
                        end - (begin == std::string::npos ? 0 : begin + 1) + 1);
  }

 private:
  static constexpr std::size_t limit = 4096;
  std::string text_;
};

struct Running {
  std::string execution;
  UniqueFd errors;
  LastLine last;
};

class Nursery {
 public:
  explicit Nursery(int socket) : socket_(socket) {}

  int run() {
    ::fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &children, nullptr);
    signals_.reset(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return 71;
    while (step()) {
    }
    for (const auto& [pid, leaf] : leaves_) ::kill(pid, SIGKILL);
    return 0;
  }

 private:
  /// False: the launcher has gone.
  bool step() {
    std::vector<pollfd> watched = {{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    std::vector<pid_t> pids;
    for (const auto& [pid, leaf] : leaves_) {
      if (!leaf.errors) continue;
      watched.push_back({leaf.errors.get(), POLLIN, 0});
      pids.push_back(pid);
    }
    if (::poll(watched.data(), watched.size(), -1) < 0) return errno == EINTR;
    for (std::size_t i = 0; i < pids.size(); ++i) {
      if (watched[i + 2].revents == 0) continue;
      auto& leaf = leaves_.at(pids[i]);
      leaf.last.read(leaf.errors.get());
      if ((watched[i + 2].revents & POLLIN) == 0) leaf.errors.reset();  // closed by every holder
    }
    if (watched[1].revents != 0) reap();
    if (watched[0].revents == 0) return true;
    const auto filled = reader_.fill(socket_.get());
    if (!filled || !*filled) return false;
    for (;;) {
      auto message = reader_.next();
      if (!message) return false;
      if (!*message) return true;
      handle(**message);
    }
  }

  void handle(const Value& message) {
    const auto op = message.value("op", "");
    if (op == "hello") {
      run_folder_ = message.value("run_folder", "");
      answer(message, "");
    } else if (op == "give") {
      give(message);
    } else if (op == "launch") {
      const auto bytes = message.find("job");
      if (bytes == message.end() || !bytes->is_binary()) return;
      const auto& binary = bytes->get_binary();
      if (auto job = decode_leaf_job({reinterpret_cast<const char*>(binary.data()), binary.size()})) launch(*job);
    } else if (op == "kill") {
      const auto execution = message.value("execution", "");
      for (const auto& [pid, leaf] : leaves_)
        if (leaf.execution == execution) ::kill(pid, SIGKILL);
    }
  }

  void answer(const Value& message, const std::string& error) {
    say({{"op", "answer"}, {"id", message.value("id", "")}, {"error", error}});
  }

  void give(const Value& message) {
    scenarios::LoadOptions options;
    options.variant = message.value("variant", "");
    options.check_programs = false;
    auto loaded = scenarios::load_text(message.value("text", ""), message.value("file", ""), options);
    if (!loaded.scenario) {
      answer(message, loaded.errors.empty() ? "the scenario could not be read" : loaded.errors.front().text());
      return;
    }
    scenarios_.insert_or_assign(message.value("identity", ""), std::move(*loaded.scenario));
    answer(message, "");
  }

  void launch(const LeafJob& job) {
    const auto scenario = scenarios_.find(job.scenario);
    if (scenario == scenarios_.end()) return exited(job.execution, false, "scenario " + job.scenario + " is not known");
    UniqueFd outlet;
    if (!scenario->second.ways_out.empty()) {
      auto opened = open_outlet();
      if (!opened) return exited(job.execution, false, opened.error().message);
      outlet = std::move(*opened);
    }
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
      return exited(job.execution, false, base::system_error("pipe for a leaf", errno).message);
    UniqueFd read_end(pipe[0]), write_end(pipe[1]);
    std::optional<base::Error> refused;
    auto pid = clone_with(leaf_namespaces);
    if (pid < 0) {
      // The leaf still has to say so in its own events: it runs in the host's namespaces and starts nothing.
      refused = base::Error{base::ErrorCode::unavailable,
                            "this host does not let users create namespaces (" + std::string(std::strerror(errno)) +
                                "); `leafcutter doctor` says what would enable it",
                            {}};
      pid = clone_with(0);
    }
    if (pid == 0) child(job, scenario->second, std::move(write_end), std::move(outlet), refused);
    if (pid < 0) return exited(job.execution, false, base::system_error("clone of a leaf", errno).message);
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    leaves_[pid] = {job.execution, std::move(read_end), {}};
  }

  /// A process beside the leaf, in the host's namespaces; it ends when the leaf's end of the channel is closed.
  base::Expected<UniqueFd> open_outlet() {
    auto channel = outlet_channel();
    if (!channel) return channel.error();
    const auto pid = clone_with(0);
    if (pid < 0) return base::system_error("clone for a way out of a leaf", errno);
    if (pid > 0) return std::move(channel->first);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    channel->first.reset();
    leave_nursery();
    run_outlet(std::move(channel->second));
    ::_exit(0);
  }

  /// In a process that was cloned: it keeps nothing of the nursery's.
  void leave_nursery() {
    for (auto& [pid, leaf] : leaves_) leaf.errors.reset();
    socket_.reset();
    signals_.reset();
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  [[noreturn]] void child(const LeafJob& job, const scenarios::Scenario& scenario, UniqueFd errors, UniqueFd outlet,
                          const std::optional<base::Error>& refused) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The nursery may have died before the line above: then nobody reads our pipe.
    pollfd reader{errors.get(), POLLOUT, 0};
    if (::poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) != 0) ::_exit(1);
    ::dup2(errors.get(), 2);
    errors.reset();
    leave_nursery();
    run_leaf({job, scenario, run_folder_, uid_, gid_, std::move(outlet), refused});
  }

  void reap() {
    std::array<signalfd_siginfo, 16> infos{};
    while (::read(signals_.get(), infos.data(), sizeof infos) > 0) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = leaves_.find(pid);
      if (found == leaves_.end()) continue;
      auto& leaf = found->second;
      if (leaf.errors) leaf.last.read(leaf.errors.get());
      const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      auto detail = clean ? std::string() : describe_exit(status);
      if (const auto line = leaf.last.line(); !clean && !line.empty()) detail += ": " + line;
      exited(leaf.execution, clean, detail);
      leaves_.erase(found);
    }
  }

  void exited(const std::string& execution, bool clean, const std::string& detail) {
    say({{"op", "exit"}, {"execution", execution}, {"clean", clean}, {"detail", detail}});
  }

  /// A failed send means that the launcher is gone, which the poll loop learns by end of file.
  void say(const Value& message) { [[maybe_unused]] const auto sent = send_message(socket_.get(), message); }

  UniqueFd socket_, signals_;
  WireReader reader_;
  std::string run_folder_;
  const uid_t uid_ = ::geteuid();
  const gid_t gid_ = ::getegid();
  std::map<std::string, scenarios::Scenario> scenarios_;
  std::map<pid_t, Running> leaves_;
};

}  // namespace

int run_nursery(int socket) { return Nursery(socket).run(); }

}  // namespace leafcutter::node
