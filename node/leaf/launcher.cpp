#include "node/leaf/launcher.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/unique_fd.hpp"
#include "node/leaf/revival.hpp"
#include "node/leaf/wire.hpp"

namespace leafcutter::node {
namespace {

using protocols::Value;

base::Error gone(const std::string& why) { return {base::ErrorCode::io, why, {}}; }

/// Between fork and exec of a threaded program: async-signal-safe calls only.
[[noreturn]] void become_nursery(const char* program, int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (socket == nursery_socket) {
    ::fcntl(socket, F_SETFD, 0);
  } else if (::dup2(socket, nursery_socket) < 0) {
    ::_exit(126);
  }
  ::syscall(SYS_close_range, static_cast<unsigned>(nursery_socket) + 1, ~0u, 0u);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, 0);
  if (null > 0) ::close(null);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::array<char*, 3> argv = {const_cast<char*>(program), const_cast<char*>("leaf-nursery"), nullptr};
  ::execv(program, argv.data());
  ::_exit(127);
}

/// With one nursery, for as long as that lives.
class NurseryLauncher final : public Launcher {
 public:
  NurseryLauncher(std::string program, std::string run_folder)
      : program_(std::move(program)), run_folder_(std::move(run_folder)) {}

  base::Status begin() {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
      return base::system_error("socketpair for the nursery", errno);
    socket_.reset(pair[0]);
    base::UniqueFd theirs(pair[1]);
    stop_.reset(::eventfd(0, EFD_CLOEXEC));
    if (!stop_) return base::system_error("eventfd", errno);
    std::promise<base::Status> started;
    auto result = started.get_future();
    // The parent-death signal follows the thread that forked: this one, which lives as long as the launcher.
    thread_ = std::thread([this, &started, end = theirs.release()] {
      const pid_t pid = ::fork();
      if (pid == 0) become_nursery(program_.c_str(), end);
      const int error = errno;
      ::close(end);
      if (pid < 0) {
        started.set_value(base::system_error("fork of the nursery", error));
        return;
      }
      nursery_ = pid;
      started.set_value(base::ok());
      serve();
    });
    if (auto status = result.get(); !status) return status;
    return greet();
  }

  ~NurseryLauncher() override {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  base::Status give(const scenarios::Scenario& scenario, const std::string& identity) override {
    {
      const std::lock_guard lock(mutex_);
      if (given_.contains(identity)) return base::ok();
    }
    auto status = ask("give " + identity, {{"op", "give"},
                                           {"id", "give " + identity},
                                           {"identity", identity},
                                           {"text", scenario.text},
                                           {"file", scenario.file},
                                           {"variant", scenario.variant}});
    if (!status) return status;
    const std::lock_guard lock(mutex_);
    given_.insert(identity);
    return base::ok();
  }

  base::Status launch(const LeafJob& job, OnExit on_exit) override {
    {
      const std::lock_guard lock(mutex_);
      if (gone_) return gone(why_gone_);
      if (!given_.contains(job.scenario))
        return base::Error{
            base::ErrorCode::internal, "scenario " + job.scenario + " was not given to the launcher", {}};
      if (!running_.emplace(job.execution, std::move(on_exit)).second)
        return base::Error{base::ErrorCode::conflict, "execution " + job.execution + " is running already", {}};
    }
    auto status = send({{"op", "launch"}, {"job", Value::binary(binary(encode(job)))}});
    if (status) return status;
    // Exactly one side tells the caller: the error here, or the exit that `serve` reported when the nursery went.
    const std::lock_guard lock(mutex_);
    return running_.erase(job.execution) > 0 ? status : base::ok();
  }

  void kill(const std::string& execution) override {
    // A failed send means that the nursery is gone, and every leaf with it.
    [[maybe_unused]] const auto sent = send({{"op", "kill"}, {"execution", execution}});
  }

 private:
  static std::vector<std::uint8_t> binary(const std::string& bytes) { return {bytes.begin(), bytes.end()}; }

  base::Status greet() { return ask("hello", {{"op", "hello"}, {"id", "hello"}, {"run_folder", run_folder_}}); }

  base::Status send(const Value& message) {
    const std::lock_guard lock(send_mutex_);
    return send_message(socket_.get(), message);
  }

  /// Sends and waits for the answer with the same id.
  base::Status ask(const std::string& id, const Value& message) {
    {
      const std::lock_guard lock(mutex_);
      if (gone_) return gone(why_gone_);
      answers_.erase(id);
    }
    // A nursery that does not take the message has gone, and the thread that serves it will say why.
    if (auto status = send(message); !status && status.error().code != base::ErrorCode::io) return status;
    std::unique_lock lock(mutex_);
    const bool answered =
        changed_.wait_for(lock, std::chrono::seconds(30), [&] { return gone_ || answers_.contains(id); });
    if (!answered)
      return base::Error{base::ErrorCode::timeout, "the nursery did not answer \"" + id + "\" within 30 s", {}};
    const auto found = answers_.find(id);
    if (found == answers_.end()) return gone(why_gone_);
    const auto text = found->second;
    answers_.erase(found);
    if (text.empty()) return base::ok();
    return base::Error{base::ErrorCode::bad_input, text, {}};
  }

  void serve() {
    WireReader reader;
    for (bool alive = true; alive;) {
      std::array<pollfd, 2> watched = {pollfd{socket_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) break;
      stopping_ = watched[1].revents != 0;
      if (stopping_) break;
      if (watched[0].revents == 0) continue;
      auto filled = reader.fill(socket_.get());
      alive = filled.ok() && *filled;
      alive = deliver(reader) && alive;
    }
    end();
  }

  /// False: the stream is broken.
  bool deliver(WireReader& reader) {
    for (;;) {
      auto message = reader.next();
      if (!message) return false;
      if (!*message) return true;
      const auto& value = **message;
      const auto op = value.value("op", "");
      if (op == "answer") {
        const std::lock_guard lock(mutex_);
        answers_[value.value("id", "")] = value.value("error", "");
        changed_.notify_all();
      } else if (op == "exit") {
        finish({value.value("execution", ""), value.value("clean", false), value.value("detail", "")});
      }
    }
  }

  void finish(const LeafExit& exit) {
    OnExit on_exit;
    {
      const std::lock_guard lock(mutex_);
      const auto found = running_.find(exit.execution);
      if (found == running_.end()) return;
      on_exit = std::move(found->second);
      running_.erase(found);
    }
    if (on_exit) on_exit(exit);
  }

  /// The nursery has gone or is to go; its leaves die with it (parent-death signal).
  void end() {
    // At end of file it is about to exit: how it does is worth knowing, for a while.
    const base::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, nursery_, 0)));
    pollfd gone_by_itself{handle.get(), POLLIN, 0};
    if (!stopping_ && handle) ::poll(&gone_by_itself, 1, 1000);
    ::kill(nursery_, SIGKILL);
    int status = 0;
    while (::waitpid(nursery_, &status, 0) < 0 && errno == EINTR) {
    }
    std::map<std::string, OnExit> left;
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
      why_gone_ = "the nursery ended: " + describe_exit(status);
      why = why_gone_;
      left.swap(running_);
      changed_.notify_all();
    }
    for (const auto& [execution, on_exit] : left)
      if (on_exit) on_exit({execution, false, why});
  }

  std::string program_, run_folder_;
  base::UniqueFd socket_, stop_;
  std::thread thread_;
  pid_t nursery_ = -1;
  bool stopping_ = false;  ///< the launcher itself ends (its thread's own)
  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> answers_;  ///< id -> error text, empty when well
  std::map<std::string, OnExit> running_;
  std::set<std::string> given_;
  bool gone_ = false;
  std::string why_gone_;
};

}  // namespace

Launcher::~Launcher() = default;

base::Expected<std::unique_ptr<Launcher>> Launcher::start(const std::string& program, const std::string& run_folder) {
  return start_reviving([program, run_folder]() -> base::Expected<std::unique_ptr<Launcher>> {
    auto launcher = std::make_unique<NurseryLauncher>(program, run_folder);
    if (auto status = launcher->begin(); !status) return status.error();
    return std::unique_ptr<Launcher>(std::move(launcher));
  });
}

}  // namespace leafcutter::node
