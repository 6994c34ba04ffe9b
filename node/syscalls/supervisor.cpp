#include "node/syscalls/supervisor.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <exception>
#include <semaphore>
#include <thread>
#include <utility>

#include "node/syscalls/effects.hpp"
#include "node/syscalls/gate.hpp"
#include "node/syscalls/listener.hpp"
#include "node/syscalls/object.hpp"

namespace leafcutter::node {
namespace {

/// Notifications answered after the end was asked for: a service that never stops calling must not hold the end up.
constexpr int drained_at_most = 65536;

/// Notifications taken before the next one is looked at; more wait in the kernel.
constexpr std::size_t received_at_most = 4096;

/// `failed` is called at most once, whoever finds something.
SupervisorContext failing_once(SupervisorContext context) {
  context.failed = [failed = std::move(context.failed), told = false](const std::string& why) mutable {
    if (!std::exchange(told, true)) failed(why);
  };
  return context;
}

/// Interrupts the supervisor's thread while it waits in the kernel for a notification and for nothing else. The handler
/// does nothing; it is there because a signal that is ignored interrupts nobody.
int interrupting_signal() {
  static const int number = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGRTMIN + 7, &action, nullptr);
    return SIGRTMIN + 7;
  }();
  return number;
}

/// While it lives, that signal comes through to this thread, and to no call that is carried out for a task.
class LetsInterrupt {
 public:
  explicit LetsInterrupt(std::atomic<bool>& said) : said_(said) {
    mask(SIG_UNBLOCK);
    said_ = true;
  }
  ~LetsInterrupt() {
    said_ = false;
    mask(SIG_BLOCK);
  }
  LetsInterrupt(const LetsInterrupt&) = delete;
  LetsInterrupt& operator=(const LetsInterrupt&) = delete;

 private:
  static void mask(int how) {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, interrupting_signal());
    ::pthread_sigmask(how, &one, nullptr);
  }
  std::atomic<bool>& said_;
};

/// Signals are for the process's other threads. What is created on a task's behalf gets the task's umask, so the thread
/// leaves the process's umask (and working directory) and has none; where unshare is forbidden, both masks apply.
void settle_thread() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  if (::unshare(CLONE_FS) == 0) ::umask(0);
}

}  // namespace

struct Supervisor::State {
  State(base::UniqueFd fd, SupervisorContext given)
      : context(failing_once(std::move(given))),
        listener(std::move(fd)),
        names(context.data_folder, context.path_globs, context.peers, context.families, context.sites.plan(),
              context.service),
        effects(listener, context, names),
        gate(listener, context.recorder, context.service, context.failed),
        wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        waking(context.sites.wake_at_release([this] { ring(); })) {}
  ~State() { context.sites.forget_wake(waking); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  SupervisorContext context;
  Listener listener;
  ObjectNames names;
  Effects effects;
  Gate gate;
  base::UniqueFd wake;
  std::uint64_t waking;
  std::atomic<bool> stopping = false;
  std::atomic<bool> passing = false;   ///< the thread waits for a notification in a way that only a signal ends
  std::binary_semaphore loop_left{0};  ///< it does no more
  std::vector<pollfd> watched;         ///< the listener, the wake descriptor, and what some call waits for
  std::deque<seccomp_notif> received;  ///< in the order they came; a task has at most one
  std::thread thread;

  void run();
  base::Status loop();
  base::Status pass_calls();
  bool announced() const;
  base::Status receive_pending();
  base::Expected<bool> settle(const seccomp_notif& notification);
  base::Status handle(const seccomp_notif& notification);
  base::Status drain();
  base::Expected<short> wait();
  void ring() const {
    if (wake) ::eventfd_write(wake.get(), 1);
  }
};

/// What poll() saw on the listener: at once when something is left to do, else after at most the time until a held call
/// is due.
base::Expected<short> Supervisor::State::wait() {
  watched.assign({{listener.fd(), POLLIN, 0}, {wake.get(), POLLIN, 0}});
  effects.add_awaited(watched);
  timespec left{};
  const auto due = effects.next_due();
  if (due && received.empty()) {
    const auto ns =
        std::max<std::chrono::nanoseconds>(*due - Effects::Clock::now(), std::chrono::nanoseconds(0)).count();
    left = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  }
  if (::ppoll(watched.data(), watched.size(), due || !received.empty() ? &left : nullptr, nullptr) < 0) {
    if (errno != EINTR) return base::system_error("wait for system call notifications", errno);
    return short{0};
  }
  if ((watched[1].revents & POLLIN) != 0) {
    eventfd_t rings = 0;
    ::eventfd_read(wake.get(), &rings);
    if (const auto done = effects.release_seen(); !done) return done.error();
  }
  if (watched.size() > 2)
    if (const auto done = effects.release_ready(watched); !done) return done.error();
  return watched[0].revents;
}

/// The quick way, while there is nothing to watch but the listener and calls come that are settled at a glance: three
/// calls of the kernel for each. Ends at the first other one.
base::Status Supervisor::State::pass_calls() {
  if (!received.empty() || effects.holds_calls()) return base::ok();
  const LetsInterrupt here(passing);
  seccomp_notif next;
  while (!stopping) {
    const auto came = listener.receive(next);
    if (!came) return came.error();
    if (!*came) break;  // interrupted; or a task was killed, and perhaps it was the last one
    const auto settled = settle(next);
    if (!settled) return settled.error();
    if (*settled) continue;
    received.push_back(next);
    return receive_pending();
  }
  return base::ok();
}

base::Status Supervisor::State::loop() {
  while (!stopping) {
    if (const auto done = pass_calls(); !done) return done;
    const auto seen = wait();
    if (!seen) return seen.error();
    if (effects.next_due())
      if (const auto done = effects.release_due(Effects::Clock::now()); !done) return done;
    if ((*seen & POLLIN) != 0) {
      if (const auto done = receive_pending(); !done) return done;
    }
    if (!received.empty()) {
      const auto next = received.front();
      received.pop_front();
      if (const auto done = handle(next); !done) return done;
    } else if ((*seen & (POLLIN | POLLHUP)) == POLLHUP) {  // the last task under the filter has gone
      return effects.release_all("the service ended");
    } else if ((*seen & (POLLERR | POLLNVAL)) != 0) {
      return base::Error{base::ErrorCode::internal, "the listener's descriptor is not usable", {}};
    }
  }
  return base::ok();
}

bool Supervisor::State::announced() const {
  pollfd pending{listener.fd(), POLLIN, 0};
  return ::poll(&pending, 1, 0) > 0 && (pending.revents & POLLIN) != 0;
}

/// Until its notification is received, a signal interrupts a call, and a handler without SA_RESTART makes it fail with
/// EINTR, which a file's call never does by itself. So everything that waits is received before anything that takes
/// time.
base::Status Supervisor::State::receive_pending() {
  while (received.size() < received_at_most && announced()) {
    seccomp_notif next;
    const auto came = listener.receive(next);
    if (!came) return came.error();
    if (*came) received.push_back(next);
  }
  return base::ok();
}

/// True when the call needed no look.
base::Expected<bool> Supervisor::State::settle(const seccomp_notif& notification) {
  const auto stopped = gate.stops(notification);
  if (!stopped || *stopped) return stopped;
  return effects.at_known(notification);
}

base::Status Supervisor::State::handle(const seccomp_notif& notification) {
  if (const auto settled = settle(notification); !settled || *settled)
    return settled ? base::ok() : base::Status(settled.error());
  if (const auto again = effects.at_again(notification); !again || *again)
    return again ? base::ok() : base::Status(again.error());
  // Where signals storm, many have gone by the time that it is their turn; others wait.
  if (!received.empty() && !listener.valid(notification.id)) return base::ok();
  const Target target(static_cast<pid_t>(notification.pid));
  auto object = names.name(notification.data, target);
  auto source = names.name_source(notification.data, target);
  if (!listener.valid(notification.id)) return base::ok();  // what was read may be another task's
  if (source) return effects.at_both(notification, std::move(*source), std::move(object));
  switch (object.state) {
    case Object::State::site:
    case Object::State::elsewhere: return effects.at_call(notification, std::move(object));
    case Object::State::unresolved: return effects.at_unresolved(notification, object);
    case Object::State::no_site: break;
  }
  return effects.at_no_site(notification, object);
}

/// Nobody may be left waiting for an answer; nothing strikes any more.
base::Status Supervisor::State::drain() {
  if (const auto done = effects.release_all("released by the leaf's end"); !done) return done;
  for (int answered = 0; answered < drained_at_most;) {
    for (; !received.empty(); received.pop_front(), ++answered) {
      const auto stopped = gate.stops(received.front());
      if (!stopped) return stopped.error();
      if (*stopped) continue;
      if (const auto sent = listener.let_run(received.front().id); !sent) return sent.error();
    }
    if (!announced()) break;
    if (const auto done = receive_pending(); !done) return done;
    ++answered;
  }
  return base::ok();
}

void Supervisor::State::run() {
  settle_thread();
  std::string why;
  try {
    if (!wake)
      why = "no eventfd";
    else if (auto ended = loop(); !ended || !(ended = drain()))
      why = ended.error().message;
  } catch (const std::exception& error) {
    why = error.what();
  }
  loop_left.release();
  if (!why.empty()) context.failed("the system call supervisor of " + context.service + " failed: " + why);
}

Supervisor::Supervisor(base::UniqueFd listener, SupervisorContext context)
    : state_(std::make_unique<State>(std::move(listener), std::move(context))) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Supervisor::~Supervisor() {
  state_->stopping = true;
  state_->ring();
  // A signal may come a moment before the wait that it is to end, so another one follows until it is seen.
  while (state_->thread.joinable() && !state_->loop_left.try_acquire_for(std::chrono::milliseconds(1)))
    if (state_->passing) ::pthread_kill(state_->thread.native_handle(), interrupting_signal());
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace leafcutter::node
