#include "node/host/actions/effect.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "node/host/actions/execute.hpp"
#include "node/host/profile.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

constexpr auto undo_patience = std::chrono::seconds(5);

Error effect_failed(const std::string& why) { return {ErrorCode::io, why, {}}; }

// --- nothing: a signal whose effect is the process's own affair ---

base::Status nothing(const Intent&, const EffectContext&) { return base::ok(); }

// --- workers ---

std::vector<HostProcess> workers(const Intent& intent, const EffectContext& context) {
  return workers_of(context.state.folder(), intent.id, session_of(context.state, intent.id));
}

/// `count` processes "program host-worker STATE ID", each of which reads the intent itself.
base::Status start_workers(const Intent& intent, const EffectContext& context) {
  const auto count = intent.recipe.at("count").get<unsigned>();
  for (unsigned i = 0; i < count; ++i) {
    std::array<std::string, 4> texts = {context.program, worker_word, context.state.folder(), intent.id};
    std::array<char*, 5> argv = {texts[0].data(), texts[1].data(), texts[2].data(), texts[3].data(), nullptr};
    std::array<char*, 1> envp = {nullptr};
    // Twice, so that it is nobody's child: it neither waits for us nor ends with us.
    const pid_t child = ::fork();
    if (child < 0) return base::system_error("fork", errno);
    if (child == 0) {
      ::setsid();
      const pid_t second = ::fork();
      if (second != 0) ::_exit(second < 0 ? 1 : 0);
      const int null = ::open("/dev/null", O_RDWR);
      for (const int fd : {0, 1, 2}) ::dup2(null, fd);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(127);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) return effect_failed("cannot start a worker");
  }
  return base::ok();
}

base::Status check_workers(const Intent& intent, const EffectContext& context) {
  const auto count = intent.recipe.at("count").get<std::size_t>();
  const auto settled = context.state.path("kept/" + intent.id + ".held");
  const std::chrono::nanoseconds left(std::max<std::int64_t>(intent.deadline - boot_time(), 0));
  return wait_for(std::min<std::chrono::nanoseconds>(left, std::chrono::seconds(20)), [&]() -> base::Status {
    const auto found = workers(intent, context).size();
    if (found != count)
      return effect_failed(std::to_string(found) + " of " + std::to_string(count) + " workers are there");
    if (intent.recipe.value("work", "") == "hold" && ::access(settled.c_str(), F_OK) != 0)
      return effect_failed("the memory is not held yet");
    return base::ok();
  });
}

base::Status end_workers(const Intent& intent, const EffectContext& context) {
  const auto ended = wait_for(undo_patience, [&]() -> base::Status {
    const auto left = workers(intent, context);
    for (const auto& worker : left) signal_process_of(worker.pid, worker.started, SIGKILL);
    if (left.empty()) return base::ok();
    return effect_failed(std::to_string(left.size()) + " workers are left");
  });
  ::unlink(context.state.path("kept/" + intent.id + ".held").c_str());
  return ended;
}

base::Status no_workers(const Intent& intent, const EffectContext& context) {
  const auto left = workers(intent, context).size();
  if (left == 0) return base::ok();
  return effect_failed(std::to_string(left) + " of its processes are left");
}

base::Status end_command(const Intent& intent, const EffectContext& context) {
  auto ended = end_workers(intent, context);
  if (ended) ::unlink(context.state.path("kept/" + intent.id + ".session").c_str());
  return ended;
}

// --- a file that takes room ---

base::Status fill(const Intent& intent, const EffectContext&) {
  const auto path = intent.recipe.at("path").get<std::string>();
  const auto bytes = intent.recipe.at("bytes").get<std::uint64_t>();
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return base::system_error("cannot create " + path, errno);
  if (::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return base::ok();
  if (errno != EOPNOTSUPP) return base::system_error("cannot take room in " + path, errno);
  const std::string zeros(std::size_t{1} << 20, '\0');
  for (std::uint64_t at = 0; at < bytes; at += zeros.size()) {
    if (intent.overdue()) return effect_failed("its time is over");
    const auto piece = std::string_view(zeros).substr(0, std::min<std::uint64_t>(zeros.size(), bytes - at));
    if (const auto written = base::write_at(fd.get(), piece, at, path); !written) return written;
  }
  return base::ok();
}

base::Status check_fill(const Intent& intent, const EffectContext&) {
  struct stat about {};
  const auto path = intent.recipe.at("path").get<std::string>();
  if (::lstat(path.c_str(), &about) != 0) return base::system_error(path, errno);
  const auto taken = static_cast<std::uint64_t>(about.st_blocks) * 512;
  if (taken < intent.recipe.at("bytes").get<std::uint64_t>())
    return effect_failed(path + " takes " + std::to_string(taken) + " bytes only");
  return base::ok();
}

base::Status remove_fill(const Intent& intent, const EffectContext&) {
  const auto path = intent.recipe.at("path").get<std::string>();
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return base::system_error("cannot remove " + path, errno);
  return base::ok();
}

base::Status no_fill(const Intent& intent, const EffectContext&) {
  struct stat about {};
  const auto path = intent.recipe.at("path").get<std::string>();
  if (::lstat(path.c_str(), &about) != 0 && errno == ENOENT) return base::ok();
  return effect_failed(path + " is still there");
}

// --- a stopped process ---

base::Status stop_process(const Intent& intent, const EffectContext&) {
  if (signal_process_of(intent.recipe.at("pid").get<pid_t>(), intent.recipe.at("started").get<std::uint64_t>(),
                        SIGSTOP))
    return base::ok();
  return effect_failed("the process has gone");
}

base::Status check_stopped(const Intent& intent, const EffectContext&) {
  return wait_for(std::chrono::seconds(2), [&]() -> base::Status {
    const auto now = host_process(intent.recipe.at("pid").get<pid_t>());
    if (now && now->state == 'T') return base::ok();
    return effect_failed("the process does not stand still");
  });
}

base::Status continue_process(const Intent& intent, const EffectContext&) {
  if (intent.boot == boot_id())
    signal_process_of(intent.recipe.at("pid").get<pid_t>(), intent.recipe.at("started").get<std::uint64_t>(), SIGCONT);
  return base::ok();
}

base::Status not_stopped(const Intent& intent, const EffectContext&) {
  const auto started = intent.recipe.at("started").get<std::uint64_t>();
  return wait_for(std::chrono::seconds(2), [&]() -> base::Status {
    const auto now = host_process(intent.recipe.at("pid").get<pid_t>());
    const bool ours = intent.boot == boot_id() && now && now->started == started;
    if (!ours || now->state != 'T') return base::ok();
    return effect_failed("the process still stands still");
  });
}

// --- a service that must be well afterwards ---

base::Status healthy(const Intent& intent) {
  const auto end = execute(command_line_from(intent.recipe.at("healthy")));
  if (end.good()) return base::ok();
  return effect_failed("the service is not well: " + end.text());
}

base::Status recover_service(const Intent& intent, const EffectContext&) {
  const std::chrono::nanoseconds patience(intent.recipe.at("within").get<std::int64_t>());
  // It may come back by itself: whoever supervises it gets half of the time.
  if (wait_for(intent.recipe.value("at-once", false) ? std::chrono::nanoseconds(0) : patience / 2,
               [&] { return healthy(intent); }))
    return base::ok();
  const auto end = execute(command_line_from(intent.recipe.at("recover")));
  if (!end.good()) return effect_failed("the recovery failed: " + end.text());
  return wait_for(patience, [&] { return healthy(intent); });
}

base::Status is_healthy(const Intent& intent, const EffectContext&) { return healthy(intent); }

}  // namespace

const Effect worker_effect = {start_workers, check_workers, end_workers, no_workers};
const Effect command_effect = {nothing, nothing, end_command, no_workers};
const Effect fill_effect = {fill, check_fill, remove_fill, no_fill};
const Effect stop_effect = {stop_process, check_stopped, continue_process, not_stopped};
const Effect service_effect = {nothing, nothing, recover_service, is_healthy};

const Effect* effect_of(const Intent& intent) {
  static const Effect nothing_effect = {nothing, nothing, nothing, nothing};
  const auto kind = intent.recipe.value("kind", "");
  if (kind == "nothing") return &nothing_effect;
  if (kind == "workers") return &worker_effect;
  if (kind == "command") return &command_effect;
  if (kind == "fill") return &fill_effect;
  if (kind == "shape") return &shape_effect;
  if (kind == "configuration") return &configuration_effect;
  if (kind == "stop") return &stop_effect;
  if (kind == "service") return &service_effect;
  return nullptr;
}

base::Status wait_for(std::chrono::nanoseconds patience, const std::function<base::Status()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  int pause_ms = 2;
  for (;;) {
    auto seen = done();
    if (seen || std::chrono::steady_clock::now() >= deadline) return seen;
    ::poll(nullptr, 0, pause_ms);
    pause_ms = std::min(pause_ms * 2, 100);
  }
}

std::optional<HostProcess> session_of(const State& state, const std::string& id) {
  const auto text = base::read_file(state.path("kept/" + id + ".session"));
  const auto json = text ? Json::parse(*text, nullptr, false) : Json();
  if (!json.is_object() || json.value("boot", "") != boot_id()) return std::nullopt;
  HostProcess leader;
  leader.pid = json.value("pid", 0);
  leader.started = json.value("started", std::uint64_t{0});
  if (leader.pid < 2) return std::nullopt;
  return leader;
}

base::Expected<std::string> digest_of_file(const std::string& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0)
    return errno == ENOENT ? base::Expected<std::string>(std::string()) : base::system_error(path, errno);
  if (!S_ISREG(about.st_mode)) return Error{ErrorCode::unavailable, path + " is no regular file", {}};
  const auto bytes = base::read_file(path);
  if (!bytes) return bytes.error();
  return base::sha256(*bytes);
}

}  // namespace leafcutter::node::host
