#include "node/host/actions/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/files.hpp"
#include "base/text.hpp"
#include "node/host/actions/worker.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

constexpr auto keeper_word = "host-keeper";
constexpr auto start_patience = std::chrono::seconds(10);
constexpr int retry_ms =
    200;  ///< until what could not be undone, or is held by a process that stands still, is tried again
constexpr int look_again_ms = 5000;  ///< should a notification be missed
constexpr std::int64_t longest_retry_ns = 30'000'000'000;
constexpr int ready_fd = 3;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("unknown");
}

/// A log that cannot be written must not keep a fault in force: undoing goes on without it.
void note_undone(const State& state, const Intent& intent, const std::string& who) {
  auto key = audit_key(state.folder());
  auto log =
      key ? AuditLog::open({state.path("audit.log"), host_name(), {}}, *key) : base::Expected<AuditLog>(key.error());
  if (!log) return;
  protocols::AuditRecord record;
  record.session = intent.session;
  record.owner = intent.owner;
  record.id = intent.id;
  record.action = intent.action;
  record.resource = intent.resource;
  record.stage = "undone";
  record.detail = "by " + who;
  record.profile = intent.profile;
  if (!log->append(std::move(record))) return;
}

class Keeper {
 public:
  Keeper(State state, std::string program) : state_(std::move(state)), program_(std::move(program)) {}

  int run() {
    ::prctl(PR_SET_NAME, "lc-host-keeper");
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t ending;
    ::sigemptyset(&ending);
    ::sigaddset(&ending, SIGTERM);
    signals_.reset(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
    lock_.reset(::open(state_.path("keeper").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_) return 1;
    // Who only looks whether there is one holds it for a moment, too.
    const auto taken = wait_for(std::chrono::milliseconds(500), [&]() -> base::Status {
      if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return base::ok();
      return base::system_error("keeper", errno);
    });
    if (!taken) return say_ready(), 0;  // there is one
    const auto pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock_.get(), 0) != 0 || !base::write_at(lock_.get(), pid, 0, "keeper")) return 1;
    changes_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (::inotify_add_watch(changes_.get(), state_.path("intents").c_str(), IN_MOVED_TO | IN_DELETE) < 0) return 1;
    say_ready();
    while (watch()) {
    }
    return 0;
  }

 private:
  static void say_ready() {
    const char word = 'k';
    if (::write(ready_fd, &word, 1) != 1) return;
    ::close(ready_fd);
  }

  /// False when nothing is left to be kept.
  bool watch() {
    const auto listing = state_.list();
    if (listing.intents.empty()) return !nothing_left();
    auto next = std::int64_t{look_again_ms} * 1'000'000;
    for (const auto& intent : listing.intents) {
      if (!ending_ && !intent.overdue()) {
        next = std::min(next, intent.deadline - boot_time());
        continue;
      }
      auto& retry = retries_[intent.id];
      if (boot_time() >= retry.at && !settle(intent)) {
        retry.after =
            std::min(std::max<std::int64_t>(retry.after * 2, std::int64_t{retry_ms} * 1'000'000), longest_retry_ns);
        retry.at = boot_time() + retry.after;
      }
      next = std::min(next, std::max<std::int64_t>(retry.at - boot_time(), 0));
    }
    wait(next);
    return true;
  }

  /// Whoever begins something holds the same lock until its intent is there and its keeper has been seen.
  bool nothing_left() {
    const auto lock = state_.lock();
    if (!lock || !state_.list().intents.empty()) return false;
    ::unlink(state_.path("keeper").c_str());
    lock_.reset();
    return true;
  }

  /// Its actor may stand still while it holds the intent: then it is undone all the same, and again when it lets go.
  bool settle(const Intent& intent) {
    auto held = state_.hold(intent.id);
    if (!held) return true;  // it has gone
    const EffectContext context{state_, program_};
    if (held->has_value()) return undo_intent(intent, context, "the keeper").ok();
    if (boot_time() < intent.deadline + std::int64_t{retry_ms} * 5'000'000) return false;  // its actor is just at it
    if (const auto* effect = effect_of(intent)) {
      try {
        return effect->undo(intent, context).ok() && false;
      } catch (const Json::exception&) {
      }
    }
    return false;
  }

  void wait(std::int64_t nanoseconds) {
    const auto span = std::max<std::int64_t>(nanoseconds, 0);
    const timespec left{span / 1'000'000'000, span % 1'000'000'000};
    std::array<pollfd, 2> watched = {{{changes_.get(), POLLIN, 0}, {ending_ ? -1 : signals_.get(), POLLIN, 0}}};
    ::ppoll(watched.data(), watched.size(), &left, nullptr);
    if (watched[1].revents != 0) ending_ = true;
    std::array<char, 4096> sink{};
    while (::read(changes_.get(), sink.data(), sink.size()) > 0) {
    }
  }

  /// When what could not be undone is tried again: a recovery command is not executed five times a second for ever.
  struct Retry {
    std::int64_t at = 0, after = 0;
  };

  State state_;
  std::string program_;
  std::map<std::string, Retry> retries_;
  UniqueFd lock_, changes_, signals_;
  bool ending_ = false;  ///< SIGTERM: everything is undone at once
};

}  // namespace

base::Status undo_intent(const Intent& intent, const EffectContext& context, const std::string& who) {
  const auto* effect = effect_of(intent);
  if (effect == nullptr)
    return Error{
        ErrorCode::unavailable, "its recipe is of a kind that this program does not know; a newer one would do", {}};
  try {
    if (const auto undone = effect->undo(intent, context); !undone) return undone;
    if (const auto gone = effect->gone(intent, context); !gone) return gone;
  } catch (const Json::exception& error) {
    return Error{ErrorCode::protocol, std::string("its recipe lacks something: ") + error.what(), {}};
  }
  note_undone(context.state, intent, who);
  return context.state.forget(intent.id);
}

namespace {

/// What was kept for an intent that was never written, or is gone. The caller holds the state's lock: nobody is about
/// to write one.
void sweep(const State& state) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state.path("kept"), error)) {
    const auto name = entry.path().filename().string();
    if (!state.exists(name.substr(0, name.find('.')))) std::filesystem::remove(entry.path(), error);
  }
  for (const auto& entry : std::filesystem::directory_iterator(state.path("intents"), error))
    if (entry.path().filename().string().find(".new-") != std::string::npos)
      std::filesystem::remove(entry.path(), error);
}

}  // namespace

Recovery recover(const State& state, const std::string& program, bool all) {
  Recovery out;
  if (const auto lock = state.lock()) sweep(state);
  const auto listing = state.list();
  for (const auto& path : listing.unreadable) out.left.push_back(path);
  const EffectContext context{state, program};
  for (const auto& intent : listing.intents) {
    auto held = state.hold(intent.id);
    if (!held) continue;  // gone meanwhile
    if (!held->has_value()) {
      out.held.push_back(intent.id);
      continue;
    }
    if (!all && !intent.overdue()) {
      out.held.push_back(intent.id);
      continue;
    }
    const auto undone = undo_intent(intent, context, "recovery");
    if (undone)
      out.undone.push_back(intent.id);
    else
      out.left.push_back(intent.id + ": " + undone.error().message);
  }
  return out;
}

UniqueFd keeper_of(const State& state) {
  const UniqueFd fd(::open(state.path("keeper").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return UniqueFd();
  std::array<char, 32> text{};
  const auto n = ::pread(fd.get(), text.data(), text.size() - 1, 0);
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + std::max<ssize_t>(n, 0), pid);
  if (pid < 2) return UniqueFd();
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u)));
}

base::Status start_keeper(const State& state, const std::string& program) {
  if (keeper_of(state)) return base::ok();
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  const UniqueFd ready(ends[0]);
  UniqueFd word(ends[1]);
  std::array<std::string, 3> texts = {program, keeper_word, state.folder()};
  std::array<char*, 4> argv = {texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  std::array<char*, 1> envp = {nullptr};
  const pid_t child = ::fork();
  if (child < 0) return base::system_error("fork", errno);
  if (child == 0) {
    ::setsid();
    const pid_t second = ::fork();
    if (second != 0) ::_exit(second < 0 ? 1 : 0);
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    if (word.get() == ready_fd)
      ::fcntl(ready_fd, F_SETFD, 0);
    else
      ::dup2(word.get(), ready_fd);
    ::syscall(SYS_close_range, static_cast<unsigned>(ready_fd) + 1, ~0U, 0U);
    if (::chdir("/") == 0) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  word.reset();
  pollfd readable{ready.get(), POLLIN, 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(start_patience).count();
  while (::poll(&readable, 1, static_cast<int>(patience)) < 0 && errno == EINTR) {
  }
  char said = 0;
  if (::read(ready.get(), &said, 1) == 1 && said == 'k') return base::ok();
  return Error{ErrorCode::timeout,
               "no keeper is there to undo what would be done: " + program + " " + keeper_word + " does not answer",
               {}};
}

bool is_host_process(int argc, char** argv) {
  return argc >= 3 && (std::strcmp(argv[1], keeper_word) == 0 || std::strcmp(argv[1], worker_word) == 0);
}

int run_host_process(int argc, char** argv) {
  auto state = State::open(argv[2]);
  if (!state) return 1;
  if (std::strcmp(argv[1], worker_word) == 0) return argc == 4 ? run_worker(*state, argv[3]) : 1;
  std::array<char, 4096> path{};
  const auto n = ::readlink("/proc/self/exe", path.data(), path.size());
  return Keeper(std::move(*state), n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : argv[0]).run();
}

}  // namespace leafcutter::node::host
