#include "node/host/actions/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/files.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "node/host/actions/processes.hpp"

namespace leafcutter::node::host {
namespace {

using base::UniqueFd;

void write_small(const char* path, std::string_view text) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (fd && ::write(fd.get(), text.data(), text.size()) < 0) return;
}

void wait_until_over(std::int64_t deadline) {
  for (;;) {
    const auto left = deadline - boot_time();
    if (left <= 0) return;
    const timespec span{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(nullptr, 0, &span, nullptr);
  }
}

int burn(const Intent& intent) {
  if (const int nice = intent.recipe.value("nice", 0); nice > 0) ::setpriority(PRIO_PROCESS, 0, nice);
  volatile std::uint64_t number = 1;
  while (!intent.overdue())
    for (int i = 0; i < 100'000; ++i) number = number * 6364136223846793005U + 1442695040888963407U;
  return 0;
}

int hold(const State& state, const Intent& intent) {
  // Should memory run out, this is what goes.
  write_small("/proc/self/oom_score_adj", "1000");
  const auto bytes = intent.recipe.at("bytes").get<std::size_t>();
  auto* pages = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (pages == MAP_FAILED) return 1;
  for (std::size_t at = 0; at < bytes; at += 4096) {
    pages[at] = 1;
    if (at % (std::size_t{16} << 20) == 0 && intent.overdue()) return 0;
  }
  const UniqueFd held(::open(state.path("kept/" + intent.id + ".held").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  wait_until_over(intent.deadline);
  return 0;
}

Json end_as_json(const CommandEnd& end) {
  return {{"how", static_cast<int>(end.how)},
          {"status", end.status},
          {"error", end.error},
          {"output", Json::binary({end.output.begin(), end.output.end()})}};
}

/// Its session is on disk before the command is in it: whoever undoes finds everything that it has started.
int attend_command(const State& state, const Intent& intent) {
  ::fcntl(report_fd, F_SETFD, FD_CLOEXEC);
  const auto self = host_process(::getpid());
  if (!self || self->session != ::getpid()) return 1;
  const Json session = {{"boot", boot_id()}, {"pid", self->pid}, {"started", self->started}};
  CommandEnd end;
  if (const auto kept = write_durably(state.path("kept/" + intent.id + ".session"), session.dump()); !kept) {
    end = {CommandEnd::How::not_executed, 0, kept.error().message, {}};
  } else {
    ExecuteOptions options;
    options.own_session = false;
    options.stop = report_fd;  // its other end is closed when whoever wanted the command has gone
    end = execute(command_line_from(intent.recipe.at("line")), options);
  }
  const auto bytes = Json::to_msgpack(end_as_json(end));
  return ::write(report_fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? 0 : 1;
}

}  // namespace

int run_worker(const State& state, const std::string& id) {
  const auto text = base::read_file(state.intent_path(id));
  const auto intent = text ? intent_from(*text) : base::Expected<Intent>(text.error());
  if (!intent || intent->overdue()) return 1;
  ::prctl(PR_SET_NAME, "lc-host-worker");
  try {
    const auto work = intent->recipe.at("work").get<std::string>();
    if (work == "burn") return burn(*intent);
    if (work == "hold") return hold(state, *intent);
    if (work == "command") return attend_command(state, *intent);
  } catch (const Json::exception&) {
  }
  return 1;
}

CommandEnd run_under_worker(const State& state, const std::string& program, const Intent& intent, int stop) {
  const auto refuse = [](const char* what) {
    return CommandEnd{CommandEnd::How::not_executed, 0, base::system_error(what, errno).message, {}};
  };
  std::array<int, 2> ends{-1, -1};
  // A socket: its other end's going can be waited for.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return refuse("socketpair");
  UniqueFd report(ends[0]), theirs(ends[1]);
  std::array<std::string, 4> texts = {program, worker_word, state.folder(), intent.id};
  std::array<char*, 5> argv = {texts[0].data(), texts[1].data(), texts[2].data(), texts[3].data(), nullptr};
  std::array<char*, 1> envp = {nullptr};
  const pid_t child = ::fork();
  if (child < 0) return refuse("fork");
  if (child == 0) {
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    if (theirs.get() == report_fd)
      ::fcntl(report_fd, F_SETFD, 0);
    else
      ::dup2(theirs.get(), report_fd);
    ::syscall(SYS_close_range, static_cast<unsigned>(report_fd) + 1, ~0U, 0U);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  theirs.reset();
  std::vector<std::uint8_t> bytes;
  for (bool stopped = false;;) {
    const auto left = std::max<std::int64_t>((intent.deadline - boot_time()) / 1'000'000 + 1, 0);
    std::array<pollfd, 2> watched = {{{report.get(), POLLIN, 0}, {stopped ? -1 : stop, POLLIN, 0}}};
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready == 0 && left == 0) break;  // it does not answer: lost
    if (watched[1].revents != 0) {
      stopped = true;
      ::shutdown(report.get(), SHUT_WR);  // it sees that as our going, and can still report
    }
    if (watched[0].revents == 0) continue;
    std::array<std::uint8_t, 8192> buffer{};
    const auto n = ::read(report.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + n);
  }
  CommandEnd end;
  const auto json = Json::from_msgpack(bytes, true, false);
  if (json.is_object() && json.contains("output") && json["output"].is_binary()) {
    end.how = static_cast<CommandEnd::How>(json.value("how", static_cast<int>(CommandEnd::How::lost)));
    end.status = json.value("status", 0);
    end.error = json.value("error", "");
    const auto& output = json["output"].get_binary();
    end.output.assign(output.begin(), output.end());
  }
  int status = 0;
  if (bytes.empty()) ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

}  // namespace leafcutter::node::host
