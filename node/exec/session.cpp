#include "node/exec/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "node/exec/ward.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/event_watch.hpp"
#include "node/observe/site_book.hpp"
#include "node/syscalls/durable_image.hpp"
#include "node/syscalls/filter.hpp"
#include "node/syscalls/filter_plan.hpp"
#include "node/syscalls/supervisor.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

/// Files that are no sites: what every program opens to run at all.
const std::vector<std::string>& program_paths() {
  static const std::vector<std::string> globs = {"!/usr/*",  "!/lib/*", "!/lib[0-9x]*", "!/bin/*",      "!/sbin/*",
                                                 "!/proc/*", "!/sys/*", "!/dev/*",      "!/etc/ld.so*", "*"};
  return globs;
}

std::vector<std::string> families_to_watch(const SessionJob& job) {
  std::set<std::string> wanted(job.observe.begin(), job.observe.end());
  for (const auto& fault : job.plan.faults)
    for (const auto& families : {scenarios::families_of(fault), scenarios::families_awaited(fault)})
      wanted.insert(families.begin(), families.end());
  std::vector<std::string> families;
  for (const auto& family : scenarios::syscall_families())
    if (wanted.contains(family.name)) families.push_back(family.name);
  return families;
}

/// A folder for what is known to be durable, removed with this.
class Scratch {
 public:
  static base::Expected<std::unique_ptr<Scratch>> create() {
    std::error_code error;
    auto name = (std::filesystem::temp_directory_path(error) / "leafcutter-exec-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr)
      return base::system_error("make " + name, error ? error.value() : errno);
    return std::make_unique<Scratch>(name);
  }
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Signals that somebody sends to us are meant for the program; those of the terminal reach it by themselves.
class PassedOn {
 public:
  PassedOn() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~PassedOn() {
    next();  // what came last has found nobody
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  PassedOn(const PassedOn&) = delete;
  PassedOn& operator=(const PassedOn&) = delete;

  int fd() const { return fd_.get(); }
  const sigset_t& mask_before() const { return before_; }

  /// 0: none that has to be passed on.
  int next() {
    signalfd_siginfo info{};
    while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      if (info.ssi_code <= 0) return static_cast<int>(info.ssi_signo);
    return 0;
  }

 private:
  sigset_t before_{};
  base::UniqueFd fd_;
};

class Session {
 public:
  Session(const SessionJob& job, Recorder::Sink sink)
      : job_(job),
        recorder_([since = std::chrono::steady_clock::now()] { return std::chrono::steady_clock::now() - since; },
                  [this, told = std::move(sink)](Event event) {
                    if (!watch_.idle()) watch_.see(event, sites_);
                    told(std::move(event));
                  }),
        sites_(job.plan, recorder_) {}

  base::Expected<SessionResult> run() {
    const auto families = families_to_watch(job_);
    const auto filtered = filter_plan(job_.plan, program_lane, families, scenarios::Scope::program);
    auto filter = build_filter(filtered);
    if (!filter) return filter.error();
    auto watch = EventWatch::create(job_.plan);
    if (!watch) return watch.error();
    watch_ = std::move(*watch);
    if (const auto prepared = prepare_image(); !prepared) return prepared.error();
    PassedOn signals;
    WardJob ward_job{job_.argv,          job_.folder,
                     std::move(*filter), signals.mask_before(),
                     job_.ignore_pipe,   scratch_ ? scratch_->path() : ""};
    result_.supervised = !ward_job.filter.empty();
    sites_.arm();
    auto ward = Ward::start(ward_job);
    if (!ward) return ward.error();
    ward_ = &*ward;
    recorder_.record(program_lane, events::start, {{"attempt", 1}, {"argv", job_.argv}});
    record_in_kernel(filtered, sites_);
    if (result_.supervised) supervise(families);
    const bool whole = follow(signals);
    supervisor_.reset();
    if (crashed_) record_exit();
    sites_.finish();
    if (const auto why = failure(); !why.empty()) return base::Error{base::ErrorCode::internal, why, {}};
    if (!whole)
      return base::Error{base::ErrorCode::io, "the ward of the program was killed, and the program with it", {}};
    return result_;
  }

 private:
  base::Status prepare_image() {
    if (job_.data.empty()) return base::ok();
    auto scratch = Scratch::create();
    if (!scratch) return scratch.error();
    scratch_ = std::move(*scratch);
    auto image = DurableImage::create(job_.data, scratch_->path());
    if (!image) return image.error();
    image_ = std::make_shared<DurableImage>(std::move(*image));
    return base::ok();
  }

  void supervise(const std::vector<std::string>& families) {
    SupervisorContext context{.service = program_lane,
                              .data_folder = job_.folder,
                              .peers = {},
                              .families = families,
                              .path_globs = program_paths(),
                              .recorder = recorder_,
                              .sites = sites_,
                              .activity = activity_,
                              .crash = [this](bool power_lost) { crash(power_lost); },
                              .image = image_,
                              .failed = [this](const std::string& why) { fail(why); }};
    if (job_.every_event) context.event_limit = ~0u;
    context.stop = [this] {
      const auto stopped = ward_->stop_all();
      if (stopped > 0)
        ++holds_;
      else if (holds_ == 0)
        ward_->continue_all();  // nobody else will, and the signal may wait for its moment
      return stopped;
    };
    context.go_on = [this] {
      if (holds_ > 0 && --holds_ == 0) ward_->continue_all();
    };
    supervisor_ = std::make_unique<Supervisor>(std::move(ward_->listener()), std::move(context));
  }

  void crash(bool power_lost) {
    crashed_ = true;
    if (!ward_->end_all()) return fail("processes of the program are left after SIGKILL");
    if (!power_lost || image_ == nullptr) return;
    const auto loss = image_->power_loss();
    if (!loss) return fail("the power loss could not be carried out: " + loss.error().message);
    const std::lock_guard lock(mutex_);
    result_.power_loss = loss->text();
  }

  /// Without a supervisor no call of the program would be answered.
  void fail(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.empty()) return;
      failure_ = why;
    }
    ward_->end_all();
  }

  std::string failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  /// Until nothing of the program is left. False: the ward died.
  bool follow(PassedOn& signals) {
    for (;;) {
      pollfd watched[] = {{ward_->news(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0 && errno != EINTR) return false;
      while (const int signal = signals.next()) ward_->forward(signal);
      const auto news = ward_->next();
      using What = Ward::News::What;
      if (news.what == What::program_ended) program_ended(news.status);
      if (news.what == What::all_ended) return true;
      if (news.what == What::ward_died) return false;
    }
  }

  void program_ended(int status) {
    if (const auto refusal = ward_->refusal()) {
      result_.status = refusal->not_found() ? 127 : 126;
      result_.not_executed = "cannot " + refusal->step + ": " + std::strerror(refusal->error);
    } else if (WIFSIGNALED(status)) {
      result_.signal = WTERMSIG(status);
    } else {
      result_.status = WEXITSTATUS(status);
    }
    if (!crashed_) record_exit();  // else a power loss may still have to be told of
  }

  void record_exit() {
    Value attrs = {{"attempt", 1}, {"injected", crashed_.load()}};
    if (result_.signal != 0)
      attrs["signal"] = result_.signal;
    else
      attrs["status"] = result_.status;
    if (!result_.not_executed.empty()) attrs["detail"] = result_.not_executed;
    if (!result_.power_loss.empty()) attrs["lost"] = result_.power_loss;
    recorder_.record(program_lane, events::exit, std::move(attrs));
  }

  const SessionJob& job_;
  EventWatch watch_;  ///< under the recorder's lock
  Recorder recorder_;
  SiteBook sites_;
  Activity activity_;
  std::unique_ptr<Scratch> scratch_;
  std::shared_ptr<DurableImage> image_;
  Ward* ward_ = nullptr;
  unsigned holds_ = 0;  ///< of faults on the program, on the supervisor's thread
  std::unique_ptr<Supervisor> supervisor_;
  std::atomic<bool> crashed_ = false;
  std::mutex mutex_;
  std::string failure_;
  SessionResult result_;
};

}  // namespace

const std::vector<std::string>& session_events() {
  static const std::vector<std::string> kinds = {events::syscall, events::fault_fired};
  return kinds;
}

base::Expected<SessionResult> run_session(const SessionJob& job, Recorder::Sink sink) {
  return Session(job, std::move(sink)).run();
}

}  // namespace leafcutter::node
