#include "node/proxy/worker.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace leafcutter::node::proxy {
namespace {

constexpr std::size_t scratch_bytes = 256 << 10;
constexpr std::size_t events_in_a_round = 512;
/// Descriptors may be freed elsewhere in the process, or by other processes, which nobody tells.
constexpr auto scarcity_retry = std::chrono::milliseconds(100);

/// Up to there the time-out of epoll_pwait2 is exact enough. The kernel lets a wait be late by a thousandth of its
/// length, and by a two-hundredth in a thread that was niced: 5 ms of a second. A timer of its own never is.
constexpr auto longest_exact_wait = std::chrono::milliseconds(2);

/// epoll_pwait2 (Linux 5.11) knows nanoseconds; without it short waits are late by up to a millisecond.
int wait_on_epoll(int epoll, std::vector<epoll_event>& events, const timespec* limit) {
  const auto size = static_cast<int>(events.size());
  const int count = ::epoll_pwait2(epoll, events.data(), size, limit, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  const auto milliseconds = limit == nullptr ? -1 : limit->tv_sec * 1000 + (limit->tv_nsec + 999'999) / 1'000'000;
  return ::epoll_wait(epoll, events.data(), size, static_cast<int>(std::min<long>(milliseconds, 60'000)));
}

/// The kernel's struct sched_attr, first version, whose header (linux/sched/types.h) does not go with sched.h.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes), policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

/// Asks to be woken at the time, not up to 50 us later, and to get a processor soon then: a short turn is all that a
/// thread needs that mostly waits. From Linux 6.12 on a thread may say so (the slice of its EEVDF deadline); before,
/// the kernel does not look. Nothing depends on it but how exact delays are beside others that compute.
void prefer_short_turns() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = 100'000;  // ns, the least
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

class Worker::Mailbox final : public Source {
 public:
  explicit Mailbox(int fd) : fd_(fd) {}
  void ready(std::uint32_t) override {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto ignored = ::read(fd_, &count, sizeof count);
  }

 private:
  int fd_;
};

/// Wakes the loop at one point in time.
class Worker::Alarm final : public Source {
 public:
  Alarm() : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }

  /// False: it cannot be set.
  bool set(Time at) {
    if (at == at_) return true;
    const auto since = at.time_since_epoch();  // steady_clock is CLOCK_MONOTONIC
    itimerspec when{};
    when.it_value = {static_cast<time_t>(since.count() / 1'000'000'000), since.count() % 1'000'000'000};
    if (::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0) return false;
    at_ = at;
    return true;
  }
  void ready(std::uint32_t) override {
    std::uint64_t count = 0;
    if (::read(fd_.get(), &count, sizeof count) > 0) at_.reset();
  }

 private:
  base::UniqueFd fd_;
  std::optional<Time> at_;
};

class Worker::ScarcityTimer final : public Timed {
 public:
  explicit ScarcityTimer(Worker& worker) : worker_(worker) {}
  void due(Time) override { worker_.descriptors_freed_ = true; }

 private:
  Worker& worker_;
};

Worker::Worker(std::size_t event_queue, bool splice, Resolver& resolver)
    : ring_(event_queue),
      splice_(splice),
      resolver_(resolver),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      mailbox_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      mailbox_(std::make_unique<Mailbox>(mailbox_fd_.get())),
      alarm_(std::make_unique<Alarm>()),
      scarcity_(std::make_unique<ScarcityTimer>(*this)),
      now_(std::chrono::steady_clock::now()),
      events_(events_in_a_round),
      scratch_(scratch_bytes) {
  add(mailbox_fd_.get(), EPOLLIN, *mailbox_);
  if (alarm_->fd() < 0 || !add(alarm_->fd(), EPOLLIN, *alarm_)) alarm_.reset();
}

Worker::~Worker() { stop(); }

void Worker::start(Journal* journal, EventHook immediate) {
  journal_ = journal;
  immediate_ = std::move(immediate);
  thread_ = std::thread([this] { run(); });
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  post([this] { stopping_ = true; });
  thread_.join();
}

void Worker::post(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(mailbox_fd_.get(), &one, sizeof one);
}

bool Worker::add(int fd, std::uint32_t events, Source& source) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &source;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Worker::remove(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Worker::schedule(Pumped& pumped) {
  if (std::exchange(pumped.scheduled_, true)) return;
  ready_.push_back(&pumped);
}

void Worker::bury(std::shared_ptr<Pumped> dead) {
  dead->buried_ = true;
  dead_.push_back(std::move(dead));
}

void Worker::await_descriptors(std::function<void()> retry) {
  pipes_->clear();
  if (scarce_.empty()) timers_.set(*scarcity_, now_ + scarcity_retry);
  scarce_.push_back(std::move(retry));
}

void Worker::retry_scarce() {
  if (!std::exchange(descriptors_freed_, false) || scarce_.empty()) return;
  timers_.clear(*scarcity_);
  for (const auto& retry : std::exchange(scarce_, {})) retry();
}

void Worker::emit(EventRecord record) {
  if (!recording()) return;
  record.at = now_;
  if (journal_ == nullptr) {
    immediate_(event_of(record));
    return;
  }
  ring_.push(std::move(record));
  emitted_ = true;
}

void Worker::run() {
  // splice(2) into a socket whose other end has gone raises SIGPIPE, and has no flag against it; and signals are for
  // the threads of whoever uses the engine.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  prefer_short_turns();
  while (!stopping_) round();
}

void Worker::wait_for_events() {
  timespec wait{};
  timespec* limit = nullptr;
  if (const auto earliest = timers_.earliest(); earliest || !ready_.empty()) {
    limit = &wait;
    if (ready_.empty()) {
      const auto left = std::max(Duration{0}, Duration{*earliest - std::chrono::steady_clock::now()});
      wait.tv_sec = left.count() / 1'000'000'000;
      wait.tv_nsec = left.count() % 1'000'000'000;
      if (left > longest_exact_wait && alarm_ && alarm_->set(*earliest)) limit = nullptr;
    }
  }
  const int count = wait_on_epoll(epoll_.get(), events_, limit);
  now_ = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const auto& event = events_[static_cast<std::size_t>(i)];
    static_cast<Source*>(event.data.ptr)->ready(event.events);
  }
}

void Worker::round() {
  wait_for_events();
  run_commands();
  run_due();
  run_ready();
  retry_scarce();
  std::erase_if(dead_, [](const auto& dead) { return !dead->scheduled_; });
  if (std::exchange(emitted_, false)) journal_->wake();
}

void Worker::run_commands() {
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (const auto& command : commands) command();
}

void Worker::run_due() {
  const auto now = now_;
  while (auto* timed = timers_.pop_due(now)) timed->due(now);
}

/// What is scheduled meanwhile gets its turn in the next round, so that others come between.
void Worker::run_ready() {
  running_.swap(ready_);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    running_[i]->scheduled_ = false;
    if (!running_[i]->buried_) running_[i]->pump();
    // What falls due meanwhile does not wait for all of them.
    if (timers_.size() == 0) continue;
    refresh();
    run_due();
  }
  running_.clear();
}

}  // namespace leafcutter::node::proxy
