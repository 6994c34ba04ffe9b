#include "support.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "node/host/actions/keeper.hpp"
#include "node/host/actions/processes.hpp"

namespace leafcutter::node::host::testing {
namespace {

void write_map(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd >= 0 && ::write(fd, text.data(), text.size()) < 0) ::_exit(99);
  if (fd >= 0) ::close(fd);
}

}  // namespace

std::string program() { return LEAFCUTTER_HOST_PROGRAM; }

ActionOptions options_of_test() {
  ActionOptions options;
  options.program = program();
  options.owner = "test";
  return options;
}

Host::Host(const std::string& more) {
  folder_.write("low.conf", "low");
  folder_.write("app.conf", "as it was");
  std::filesystem::create_directories(folder_ / "room");
  profile_text_ =
      "profile: 1\nname: test\nat-once: 4\n"
      "cpu: { for: 60s, workers: 2, nice: 19 }\n"
      "memory: { for: 60s, megabytes: 8, reserve: 64 }\n"
      "network: { for: 60s, interfaces: [lo], delay: 1s, loss: 100, slowest: 1 }\n"
      "disk: { for: 60s, megabytes: 2, folders: [" +
      folder_ / "room" +
      "], reserve: 8 }\n"
      "signal:\n  sleeper: { pid-file: " +
      folder_ / "sleeper.pid" +
      ", process: sleep, signals: [STOP, HUP] }\n"
      "configure:\n  app:\n    file: " +
      folder_ / "app.conf" +
      "\n    for: 60s\n    variants:\n      low: { content: low.conf, sha256: " + base::sha256("low") +
      " }\n      stale: { content: low.conf, sha256: " + base::sha256("other") + " }\n" + more;
}

Host::~Host() {
  stop_sleeper();
  const auto done = recover(state(), program(), true);
  for (const auto& left : done.left) ADD_FAILURE() << "left: " << left;
  const auto ended = wait_for(std::chrono::seconds(20), [&]() -> base::Status {
    if (!keeper_runs()) return base::ok();
    return base::Error{base::ErrorCode::timeout, "the keeper does not end although nothing is left", {}};
  });
  if (!ended) ADD_FAILURE() << ended.error().message;
}

Profile Host::profile() const {
  auto loaded = load_profile_text(profile_text_, folder_ / "profile.yaml");
  for (const auto& error : loaded.errors) ADD_FAILURE() << error.text();
  return *loaded.profile;
}

ActionResult Host::run(const Request& request, ActionOptions options) const {
  if (options.program.empty()) options.program = program();
  auto actions = HostActions::open(state_folder(), profile(), options);
  if (actions) return actions->run(request);
  ADD_FAILURE() << actions.error().text();
  return {};
}

bool Host::run_and_die(const Request& request, Step step) const {
  const pid_t child = ::fork();
  if (child == 0) {
    auto options = options_of_test();
    options.at = [step](Step reached) {
      if (reached == step) ::raise(SIGKILL);
    };
    auto actions = HostActions::open(state_folder(), profile(), options);
    if (actions) actions->run(request);
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

std::string Host::snapshot() const {
  std::string out = "app.conf: ";
  const auto content = base::read_file(folder_ / "app.conf");
  out += content ? *content : std::string("none");
  struct stat about {};
  if (::stat((folder_ / "app.conf").c_str(), &about) == 0) out += " mode " + std::to_string(about.st_mode & 07777);
  std::vector<std::string> files;
  for (const auto& folder : {folder_.path(), folder_ / "room"})
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().filename() != "state") files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  out += "\nfiles: " + base::join_names(files);
  std::size_t workers = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto words = base::read_file(entry.path().string() + "/cmdline");
    if (words && words->find(std::string(worker_word) + '\0' + state_folder() + '\0') != std::string::npos) ++workers;
  }
  out += "\nworkers: " + std::to_string(workers);
  if (sleeper_ > 0)
    if (const auto process = host_process(sleeper_)) out += "\nsleeper: " + std::string(1, process->state);
  const auto left = State::open(state_folder())->list().intents.size();
  out += "\nintents: " + std::to_string(left);
  return out;
}

std::string Host::wait_for_snapshot(const std::string& wanted, std::chrono::milliseconds patience) const {
  const auto seen = wait_for(patience, [&]() -> base::Status {
    const auto now = snapshot();
    if (now == wanted) return base::ok();
    return base::Error{base::ErrorCode::timeout, now, {}};
  });
  return seen ? "" : "it was\n" + wanted + "\nand is\n" + seen.error().message;
}

void Host::kill_keeper() const {
  const auto keeper = keeper_of(state());
  if (!keeper) return;
  ::syscall(SYS_pidfd_send_signal, keeper.get(), SIGKILL, nullptr, 0U);
  pollfd ended{keeper.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << "the keeper survives SIGKILL";
}

bool Host::keeper_runs() const { return static_cast<bool>(keeper_of(state())); }

std::string Host::audit_flaw() const {
  const auto log = base::read_file(state_folder() + "/audit.log");
  if (!log) return log.error().message;
  const auto report = protocols::verify_audit(*log);
  return report.flaw == protocols::AuditReport::Flaw::none ? "" : report.why;
}

std::vector<protocols::AuditRecord> Host::audit() const {
  return protocols::read_audit(*base::read_file(state_folder() + "/audit.log"));
}

pid_t Host::start_sleeper() const {
  sleeper_ = ::fork();
  if (sleeper_ == 0) {
    ::execl("/bin/sleep", "sleep", "600", nullptr);
    ::_exit(127);
  }
  const auto named = wait_for(std::chrono::seconds(10), [&]() -> base::Status {
    const auto process = host_process(sleeper_);
    if (process && process->name == "sleep" && process->state == 'S') return base::ok();
    return base::Error{base::ErrorCode::timeout, "the sleeper does not sleep", {}};
  });
  if (!named) ADD_FAILURE() << named.error().message;
  folder_.write("sleeper.pid", std::to_string(sleeper_) + "\n");
  return sleeper_;
}

void Host::stop_sleeper() const {
  if (sleeper_ <= 0) return;
  ::kill(sleeper_, SIGKILL);
  ::waitpid(sleeper_, nullptr, 0);
  sleeper_ = -1;
}

std::string in_own_network(const std::function<std::string()>& body) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "pipe";
  const auto uid = ::geteuid(), gid = ::getegid();
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said;
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      said = "no namespaces here";
    } else {
      write_map("/proc/self/setgroups", "deny");
      write_map("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
      write_map("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
      said = body();
    }
    const auto written = ::write(ends[1], said.data(), said.size());
    ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    said.append(buffer.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? said : said + " (status " + std::to_string(status) + ")";
}

}  // namespace leafcutter::node::host::testing
