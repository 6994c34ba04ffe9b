#include "node/exec/ward.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

#include "node/exec/process_tree.hpp"
#include "node/syscalls/filter.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;

constexpr auto end_patience = std::chrono::seconds(10);
constexpr auto answer_patience_ms = 12'000;  ///< longer than anything the ward does takes
constexpr auto orphan_patience = std::chrono::milliseconds(1500);

constexpr char order_end = 'e', order_stop = 's', order_continue = 'c';
constexpr int order_forward = 1 << 16;  ///< on the line: plus a signal's number

/// execvp() also says EACCES when some folder of the PATH is closed to us and the program is in none of the others; a
/// shell says then that there is no such program.
bool can_be_seen(const std::string& program) {
  if (program.find('/') != std::string::npos) return true;
  const char* path = ::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access(((folder.empty() ? "." : folder) + "/" + program).c_str(), F_OK) == 0) return true;
  return false;
}

/// What the ward says on its line.
struct WardWord {
  char what = 0;  ///< 'l' the listener (attached) or why there is none, 'p' the program ended, 'a' all of it has
  int status = 0;
};

/// `fd`: -1 for none.
bool send_word(int socket, const WardWord& word, int fd) {
  iovec part{const_cast<WardWord*>(&word), sizeof word};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof word);
}

/// As recv(2), without waiting; `fd` takes what was attached.
ssize_t receive_word(int socket, WardWord& word, UniqueFd& fd) {
  iovec part{&word, sizeof word};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (const auto* header = CMSG_FIRSTHDR(&message); got > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int attached = -1;
    std::memcpy(&attached, CMSG_DATA(header), sizeof attached);
    fd.reset(attached);
  }
  return got;
}

/// Closes every descriptor but these, and 0, 1 and 2 with them: whoever reads from the program must see its end.
void keep_only(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 0;
  for (const int fd : kept) {
    if (fd < 0) continue;
    if (static_cast<unsigned>(fd) > from) ::syscall(SYS_close_range, from, static_cast<unsigned>(fd) - 1, 0u);
    from = static_cast<unsigned>(fd) + 1;
  }
  ::syscall(SYS_close_range, from, ~0u, 0u);
}

enum class WardStage : int { running, parent, folder, filter, execute };

const char* stage_text(WardStage stage) {
  switch (stage) {
    case WardStage::folder: return "enter its folder";
    case WardStage::filter: return "install the system call filter";
    case WardStage::execute: return "execute it";
    default: return "start it";
  }
}

struct SocketPair {
  UniqueFd ours, theirs;
};

base::Expected<SocketPair> make_pair_of_sockets() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return base::system_error("socketpair for a program", errno);
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

/// A page that we, the ward and the program share until it is executed: under the filter no call is free of rules, and
/// a plain store needs none.
struct Ward::Shared {
  std::atomic<WardStage> stage;
  std::atomic<int> error;
  base::ErrorCode refused = base::ErrorCode::internal;  ///< why there is no listener; written before 'l' is said
  std::array<char, 512> why{};
};

void Ward::Unmap::operator()(Shared* page) const { ::munmap(page, sizeof(Shared)); }

/// The ward's own side; everything here runs in its process.
struct Ward::Life {
  const WardJob& job;
  Shared& shared;
  UniqueFd line, orders, owner;     ///< `owner`: a pidfd of who started us
  UniqueFd filter, handing;         ///< our and the program's end of the listener's way
  UniqueFd children{}, listener{};  ///< the listener outlives who answers it: nobody is told ENOSYS
  pid_t owner_group = 0;
  pid_t program = -1;
  bool program_ended = false;

  [[noreturn]] void run() {
    const auto ward = ::getpid();
    ::prctl(PR_SET_NAME, "leafcutter-ward");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::setpgid(0, 0);  // signals for our owner's group, above all those of its terminal, are not for the ward
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    children.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    program = ::fork();
    if (program == 0) become_program(ward);
    handing.reset();
    keep_only({line.get(), orders.get(), owner.get(), filter.get(), children.get()});
    if (program > 0 && children) {
      if (!job.filter.empty()) take_listener();
      watch();
    }
    end_children(end_patience, [](pid_t, int) {});
    ::_exit(70);
  }

  void take_listener() {
    auto taken = receive_listener(filter.get());
    if (taken) {
      listener.reset(*taken);
    } else {
      shared.refused = taken.error().code;
      taken.error().message.copy(shared.why.data(), shared.why.size() - 1);
    }
    filter.reset();
    send_word(line.get(), {'l', 0}, listener ? listener.get() : -1);
  }

  [[noreturn]] void refuse(WardStage stage, int error, int status) {
    shared.error = error;
    shared.stage = stage;
    ::_exit(status);
  }

  [[noreturn]] void become_program(pid_t ward) {
    ::setpgid(0, owner_group);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != ward) ::_exit(127);
    if (!job.folder.empty() && ::chdir(job.folder.c_str()) != 0) refuse(WardStage::folder, errno, 126);
    std::vector<std::string> texts = job.argv;
    std::vector<char*> argv;
    for (auto& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    ::signal(SIGPIPE, job.ignore_pipe ? SIG_IGN : SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &job.mask, nullptr);
    if (!job.filter.empty())
      if (const int error = install_filter(job.filter, handing.get()); error != 0)
        refuse(WardStage::filter, error, 126);
    ::execvp(argv[0], argv.data());
    const int error = errno == EACCES && !can_be_seen(job.argv[0]) ? ENOENT : errno;
    refuse(WardStage::execute, error, error == ENOENT ? 127 : 126);
  }

  void watch() {
    for (;;) {
      std::array<pollfd, 4> watched = {
          {{line.get(), POLLIN, 0}, {orders.get(), POLLIN, 0}, {children.get(), POLLIN, 0}, {owner.get(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
      if (watched[3].revents != 0 || (watched[0].revents & (POLLHUP | POLLERR)) != 0) orphaned();
      if (watched[2].revents != 0) reap();
      if (watched[1].revents != 0) obey();
      if (watched[0].revents != 0) forward();
    }
  }

  [[noreturn]] void orphaned() {
    end_children(orphan_patience, [](pid_t, int) {});
    if (!job.scratch.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(job.scratch, ignored);
    }
    ::_exit(0);
  }

  void note_end(pid_t pid, int status) {
    if (pid != program) return;
    program_ended = true;
    say('p', status);
  }

  void say(char what, int status) { send_word(line.get(), {what, status}, -1); }

  void reap() {
    signalfd_siginfo info{};
    while (::read(children.get(), &info, sizeof info) > 0) {
    }
    for (;;) {
      int status = 0;
      const auto pid = ::waitpid(-1, &status, WNOHANG);
      if (pid == 0 || (pid < 0 && errno == EINTR)) {
        if (pid == 0) return;
        continue;
      }
      if (pid < 0) all_ended();
      note_end(pid, status);
    }
  }

  [[noreturn]] void all_ended() {
    say('a', 0);
    ::_exit(0);
  }

  void obey() {
    char what = 0;
    if (::recv(orders.get(), &what, 1, MSG_DONTWAIT) != 1) return;
    std::uint32_t answer = 0;
    if (what == order_end)
      answer = end_children(end_patience, [this](pid_t pid, int status) { note_end(pid, status); }) ? 1 : 0;
    if (what == order_stop) answer = stop_below(::getpid());
    if (what == order_continue) continue_below(::getpid());
    ::send(orders.get(), &answer, sizeof answer, MSG_NOSIGNAL);
    if (what == order_end && answer == 1) all_ended();
  }

  void forward() {
    int word = 0;
    if (::recv(line.get(), &word, sizeof word, MSG_DONTWAIT) != sizeof word || word < order_forward) return;
    const int signal = word - order_forward;
    if (!program_ended) {
      ::kill(program, signal);  // ours to reap, so the number is still its own
      return;
    }
    for (const auto& process : processes_below(::getpid())) signal_process(process, signal);
  }
};

base::Expected<Ward> Ward::start(const WardJob& job) {
  auto line = make_pair_of_sockets();
  if (!line) return line.error();
  auto orders = make_pair_of_sockets();
  if (!orders) return orders.error();
  auto filter = make_pair_of_sockets();
  if (!filter) return filter.error();
  UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0u)));
  if (!self) return base::system_error("pidfd_open", errno);
  auto* page = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return base::system_error("mmap", errno);
  Ward ward;
  ward.shared_.reset(new (page) Shared{});
  // Should the ward be killed, what it had becomes ours.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto group = ::getpgrp();
  ward.pid_ = ::fork();
  if (ward.pid_ < 0) return base::system_error("fork", errno);
  if (ward.pid_ == 0) {
    line->ours.reset();
    orders->ours.reset();
    Life life{job,
              *ward.shared_,
              std::move(line->theirs),
              std::move(orders->theirs),
              std::move(self),
              std::move(filter->ours),
              std::move(filter->theirs),
              {},
              {},
              group};
    life.run();
  }
  ward.line_ = std::move(line->ours);
  ward.orders_ = std::move(orders->ours);
  line->theirs.reset();  // else the ward's end would never be seen
  orders->theirs.reset();
  filter->ours.reset();
  filter->theirs.reset();
  if (!job.filter.empty())
    if (const auto taken = ward.take_listener(); !taken) return taken.error();
  return ward;
}

base::Status Ward::take_listener() {
  pollfd readable{line_.get(), POLLIN, 0};
  while (::poll(&readable, 1, answer_patience_ms) < 0 && errno == EINTR) {
  }
  WardWord word;
  const auto got = receive_word(line_.get(), word, listener_);
  if (got == sizeof word && word.what == 'l' && listener_) return base::ok();
  const bool said = got == sizeof word && word.what == 'l';
  const base::Error why{said ? shared_->refused : base::ErrorCode::timeout,
                        said ? shared_->why.data() : "the ward of the program does not answer",
                        {}};
  end_all();
  return why;
}

Ward::News Ward::next() {
  WardWord word;
  UniqueFd none;
  const auto got = receive_word(line_.get(), word, none);
  if (got == sizeof word && word.what == 'p') return {News::What::program_ended, word.status};
  if (got == sizeof word && word.what == 'a') {
    told_all_ = true;
    ::waitpid(pid_, nullptr, 0);
    return {News::What::all_ended, 0};
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (told_all_) return {};
  // Its children were killed with it or have become ours.
  end_children(end_patience, [](pid_t, int) {});
  return {News::What::ward_died, 0};
}

bool Ward::Refusal::not_found() const { return error == ENOENT; }

std::optional<Ward::Refusal> Ward::refusal() const {
  const auto stage = shared_->stage.load();
  if (stage == WardStage::running) return std::nullopt;
  return Refusal{stage_text(stage), shared_->error.load()};
}

void Ward::forward(int signal) {
  const int word = order_forward + signal;
  ::send(line_.get(), &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

base::Expected<std::uint32_t> Ward::order(char what) {
  if (::send(orders_.get(), &what, 1, MSG_NOSIGNAL) != 1) return base::system_error("order the ward", errno);
  pollfd readable{orders_.get(), POLLIN, 0};
  std::uint32_t answer = 0;
  while (::poll(&readable, 1, answer_patience_ms) < 0 && errno == EINTR) {
  }
  if (::recv(orders_.get(), &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer)
    return base::Error{base::ErrorCode::timeout, "the ward of the program does not answer", {}};
  return answer;
}

bool Ward::end_all() {
  const auto answer = order(order_end);
  return answer && *answer == 1;
}

unsigned Ward::stop_all() {
  const auto answer = order(order_stop);
  return answer ? *answer : 0;
}

void Ward::continue_all() {
  if (!order(order_continue)) return;
}

}  // namespace leafcutter::node
