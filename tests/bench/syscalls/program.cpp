#include "program.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/unique_fd.hpp"
#include "node/syscalls/filter.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::bench {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench_syscalls: %s\n", why.c_str());
  std::exit(3);
}

bool allow_everything() {
  sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{1, &allow};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Between fork and exec.
[[noreturn]] void become(const Run& run, const std::vector<sock_filter>& filter, int socket, int output,
                         char* const* argv) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, 1);
  if (::chdir(run.folder.c_str()) != 0 || node::install_filter(filter, socket) != 0) ::_exit(126);
  if (run.filter_that_allows && !allow_everything()) ::_exit(126);
  ::execvp(argv[0], argv);
  ::_exit(127);
}

}  // namespace

struct Program::State {
  explicit State(const Run& given)
      : run(given),
        recorder([] { return std::chrono::nanoseconds(0); }, [this](const node::Event& event) { note(event); }),
        book(given.plan, recorder) {}

  void note(const node::Event& event) {
    if (event.kind != "sites") return;
    for (const auto& site : event.attrs.at("sites")) counted += site.at(3).get<std::uint64_t>();
  }

  Run run;
  node::Recorder recorder;
  node::SiteBook book;
  node::Activity activity;
  std::uint64_t counted = 0;
  pid_t pid = -1;
  base::UniqueFd output;
  std::unique_ptr<node::Supervisor> supervisor;
};

Program::Program(const Run& run) : state_(std::make_unique<State>(run)) {
  auto& state = *state_;
  const auto filter = node::build_filter(run.filter);
  if (!filter) give_up(filter.error().message);
  int pair[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || ::pipe2(pipe, O_CLOEXEC) != 0)
    give_up("no sockets");
  base::UniqueFd mine(pair[0]), theirs(pair[1]), input(pipe[1]);
  state.output.reset(pipe[0]);
  std::vector<char*> words;
  for (const auto& word : run.argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  state.pid = ::fork();
  if (state.pid == 0) become(run, *filter, theirs.get(), input.get(), words.data());
  ::setpgid(state.pid, state.pid);
  theirs.reset();
  if (filter->empty()) return;
  const auto listener = node::receive_listener(mine.get());
  if (!listener) give_up(listener.error().message);
  state.supervisor = std::make_unique<node::Supervisor>(
      base::UniqueFd(*listener), node::SupervisorContext{.service = "subject",
                                                         .data_folder = run.folder,
                                                         .peers = {},
                                                         .families = run.filter.families,
                                                         .path_globs = {},
                                                         .recorder = state.recorder,
                                                         .sites = state.book,
                                                         .activity = state.activity,
                                                         .crash = [](bool) {},
                                                         .failed = [](const std::string& why) { give_up(why); }});
}

Program::~Program() {
  if (state_->pid <= 0) return;
  ::kill(-state_->pid, SIGKILL);
  ::waitpid(state_->pid, nullptr, 0);
}

std::string Program::output() {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(state_->output.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  while (::waitpid(state_->pid, &status, 0) < 0 && errno == EINTR) {
  }
  state_->pid = -1;
  state_->supervisor.reset();
  state_->book.finish();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  std::fprintf(stderr, "bench_syscalls: %s ended with status %d\n", state_->run.argv[0].c_str(), status);
  return "";
}

std::uint64_t Program::notified() const { return state_->counted; }

}  // namespace leafcutter::bench
