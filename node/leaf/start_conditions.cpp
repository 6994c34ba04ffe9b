#include "node/leaf/start_conditions.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <sstream>
#include <utility>

#include "base/text.hpp"

namespace leafcutter::node {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint32_t begun = 0, held = 1, released = 2;
constexpr std::chrono::seconds hold_patience{10};

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value, const timespec* timeout) noexcept {
  return ::syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
}

base::Expected<StartEvidence::Limit> impose_limit(int resource, std::uint64_t value, pid_t process) {
  rlimit before{}, after{};
  // With every capability in the leaf's user namespace, and none in the host's: a limit can only be lowered.
  if (::prlimit(process, static_cast<__rlimit_resource>(resource), nullptr, &before) != 0)
    return base::system_error("read " + limit_name(resource) + " of a program", errno);
  if (value > before.rlim_max)
    return base::Error{base::ErrorCode::unavailable,
                       limit_name(resource) + " cannot be " + std::to_string(value) +
                           ": this host allows no more than " + std::to_string(before.rlim_max),
                       {}};
  const rlimit wanted{value, value};
  if (::prlimit(process, static_cast<__rlimit_resource>(resource), &wanted, nullptr) != 0 ||
      ::prlimit(process, static_cast<__rlimit_resource>(resource), nullptr, &after) != 0)
    return base::system_error("set " + limit_name(resource) + " of a program", errno);
  return StartEvidence::Limit{after.rlim_cur, after.rlim_max};
}

base::Status read_offsets(StartEvidence& evidence) {
  const auto path = "/proc/" + std::to_string(evidence.pid) + "/timens_offsets";
  const auto text = base::read_file(path);
  if (!text) return text.error();
  std::istringstream lines(*text);
  std::string clock;
  std::int64_t seconds = 0, rest = 0;
  while (lines >> clock >> seconds >> rest)
    (clock == "monotonic" ? evidence.monotonic : evidence.boottime) = std::chrono::seconds(seconds) + nanoseconds(rest);
  return base::ok();
}

}  // namespace

bool StartConditions::own_user() const { return limits.contains(RLIMIT_NPROC); }

std::string limit_name(int resource) {
  switch (resource) {
    case RLIMIT_NOFILE: return "RLIMIT_NOFILE";
    case RLIMIT_AS: return "RLIMIT_AS";
    case RLIMIT_NPROC: return "RLIMIT_NPROC";
    default: return "limit " + std::to_string(resource);
  }
}

std::string offsets_text(nanoseconds offset) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(offset);
  const auto value = std::to_string(seconds.count()) + " " + std::to_string((offset - seconds).count()) + "\n";
  return "monotonic " + value + "boottime " + value;
}

base::Expected<StartEvidence> impose(const StartConditions& conditions, pid_t process) {
  StartEvidence evidence;
  evidence.pid = process;
  for (const auto& [resource, value] : conditions.limits) {
    auto limit = impose_limit(resource, value, process);
    if (!limit) return limit.error();
    evidence.limits[resource] = *limit;
  }
  if (conditions.clock_offset)
    if (auto status = read_offsets(evidence); !status) return status.error();
  return evidence;
}

base::Expected<Hold> Hold::make() {
  void* page = ::mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return base::system_error("a page to hold a program with", errno);
  return Hold(new (page) Word(begun));
}

Hold::Hold(Hold&& other) noexcept : word_(std::exchange(other.word_, nullptr)) {}

Hold::~Hold() {
  if (word_ != nullptr) ::munmap(word_, sizeof(Word));
}

void Hold::wait() const noexcept {
  word_->store(held);
  futex(word_, FUTEX_WAKE, 1, nullptr);
  while (word_->load() == held) futex(word_, FUTEX_WAIT, held, nullptr);
}

base::Status Hold::await_held(int handle) const {
  const auto deadline = std::chrono::steady_clock::now() + hold_patience;
  constexpr timespec look_again{0, 5'000'000};  // it may have ended, which wakes nobody
  while (word_->load() == begun) {
    futex(word_, FUTEX_WAIT, begun, &look_again);
    pollfd ended{handle, POLLIN, 0};
    if (word_->load() == begun && ::poll(&ended, 1, 0) > 0)
      return base::Error{base::ErrorCode::io, "the program ended before it was executed", {}};
    if (std::chrono::steady_clock::now() > deadline)
      return base::Error{base::ErrorCode::timeout, "the program was not ready to be executed after 10 s", {}};
  }
  return base::ok();
}

void Hold::release() const noexcept {
  word_->store(released);
  futex(word_, FUTEX_WAKE, 1, nullptr);
}

}  // namespace leafcutter::node
