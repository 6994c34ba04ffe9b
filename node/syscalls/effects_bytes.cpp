// Faults of the bytes that a call carries: fewer of them, fewer and then a crash, one of them wrong. The supervisor
// carries the call out itself: its arguments cannot be changed in the task (another thread could change them back).
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "node/syscalls/asked.hpp"
#include "node/syscalls/effects.hpp"

namespace leafcutter::node {
namespace {

bool reads(const Object& object) { return object.family == "read" || object.family == "receive"; }

/// Its bytes never come into the task's memory.
bool moves_between(const seccomp_data& call) {
  const auto* shape = call_shape(call.nr);
  return shape != nullptr && shape->source != none;
}

bool waits_for_bytes(const seccomp_data& call, int fd) {
  const auto status = ::fcntl(fd, F_GETFL);
  if (status < 0 || (status & O_NONBLOCK) != 0) return false;
  switch (call.nr) {
    case SYS_recvfrom:
    case SYS_recvmmsg: return (call.args[3] & MSG_DONTWAIT) == 0;
    case SYS_recvmsg: return (call.args[2] & MSG_DONTWAIT) == 0;
    case SYS_splice: return (call.args[5] & SPLICE_F_NONBLOCK) == 0;
    default: return true;
  }
}

/// One bit of one byte, where there is such a byte.
struct WrongBit {
  std::uint64_t offset = 0;
  unsigned bit = 0;
  bool struck = false;
  unsigned was = 0, is = 0;

  void strike(std::string& bytes) {
    if (offset >= bytes.size()) return;
    struck = true;
    was = static_cast<unsigned char>(bytes[offset]);
    is = was ^ (1u << (bit & 7u));
    bytes[offset] = static_cast<char>(is);
  }
  Value added_to(Value proof) const {
    proof["offset"] = offset;
    proof["was"] = was;
    proof["is"] = is;
    return proof;
  }
};

std::uint64_t count_parameter(const scenarios::Fault& fault, const char* name) {
  return fault.params.value(name, std::uint64_t{0});
}

}  // namespace

/// A call that would wait for its bytes does so here, so that it is known how many there are and no other task waits
/// with it. Only for faults that need to know.
std::optional<Effects::Clock::time_point> Effects::await_bytes(Case& at) const {
  const auto asks = [](const Strike& strike) {
    return strike.fault.kind == "short" || strike.fault.kind == "corrupt" || strike.fault.kind == "slow";
  };
  if (!reads(at.object) || (std::ranges::none_of(at.endings, asks) && std::ranges::none_of(at.waits, asks)))
    return std::nullopt;
  auto copy = target(at).duplicate(static_cast<int>(at.notification.data.args[at.object.descriptor]));
  struct stat status {};
  if (!copy || ::fstat(copy->get(), &status) != 0 || S_ISREG(status.st_mode)) return std::nullopt;
  if (!waits_for_bytes(at.notification.data, copy->get())) return std::nullopt;
  pollfd wanted{copy->get(), POLLIN, 0};
  if (::poll(&wanted, 1, 0) != 0) return std::nullopt;
  timeval limit{};
  socklen_t size = sizeof limit;
  const auto limited = ::getsockopt(copy->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, &size) == 0 &&
                       (limit.tv_sec != 0 || limit.tv_usec != 0);
  at.awaited = std::move(*copy);
  if (!limited) return Clock::time_point::max();
  return Clock::now() + std::chrono::seconds(limit.tv_sec) + std::chrono::microseconds(limit.tv_usec);
}

void Effects::add_awaited(std::vector<pollfd>& into) const {
  for (const auto& [due, at] : held_)
    if (at.awaited) into.push_back({at.awaited.get(), POLLIN, 0});
}

base::Status Effects::release_ready(const std::vector<pollfd>& polled) {
  for (const auto& one : polled) {
    if (one.revents == 0) continue;
    const auto held = std::find_if(held_.begin(), held_.end(), [&](const auto& entry) {
      return entry.second.awaited && entry.second.awaited.get() == one.fd;
    });
    if (held == held_.end()) continue;
    if (const auto done = resume(held, "its bytes came"); !done) return done;
  }
  return base::ok();
}

base::Expected<std::uint64_t> Effects::carried_bytes(const Case& at) const {
  const auto& call = at.notification.data;
  const auto task = target(at);
  const auto size = asked_size(call, task);
  if (!size) return size.error();
  const auto asked = size->value_or(0);
  const auto between = moves_between(call);
  if (asked == 0 || (!between && !reads(at.object))) return asked;
  const auto copy = task.duplicate(static_cast<int>(call.args[between ? call_shape(call.nr)->source : 0]));
  if (!copy) return copy.error();
  auto offset = named_offset(call);
  if (between) {
    const auto passed = passed_offset(call, task, true);
    if (!passed) return passed.error();
    offset = *passed;
  }
  const auto there = readable_bytes(copy->get(), offset);
  if (!there) return there.error();
  return std::min(asked, *there);
}

/// Once only, also of a call that comes again: what was read is there no more.
base::Expected<bool> Effects::take_bytes(Case& at, const Strike& strike, const Request& request) {
  if (at.taken) return true;
  auto got = receive(request);
  if (!got.performed.done || got.performed.result <= 0) {
    static_cast<void>(cannot(at, strike, got.performed.done ? "nothing was there" : got.performed.why));
    return false;
  }
  at.taken = Taken{std::move(got)};
  return true;
}

base::Expected<Effects::Ended> Effects::cut_short(Case& at, const Strike& strike) {
  const auto most = count_parameter(strike.fault, "bytes");
  const auto whole = at.taken ? base::Expected<std::uint64_t>(at.taken->whole) : carried_bytes(at);
  if (!whole) return cannot(at, strike, whole.error().message);
  if (*whole <= most) return cannot(at, strike, "it carries " + std::to_string(*whole) + " bytes");
  const auto task = target(at);
  auto limited = request(at, task);
  limited.at_most = most;
  limited.answered = true;
  std::int64_t carried = 0, value = 0;
  if (reads(at.object) && !moves_between(at.notification.data)) {
    const auto took = take_bytes(at, strike, limited);
    if (!took || !*took) return took ? base::Expected<Ended>(Ended::no) : took.error();
    at.taken->whole = *whole;
    const auto put = deliver(limited, at.taken->got);
    if (!put) return answer_fault(at, strike);
    carried = at.taken->got.performed.result;
    value = *put;
  } else {
    if (!find_room(at, most)) return cannot(at, strike, full_first);
    const auto done = carry_out(at, limited);
    if (!done) return done.error();
    if (!done->done || done->result <= 0) return cannot(at, strike, done->done ? "the call failed" : done->why);
    carried = done->result;
    value = at.notification.data.nr == SYS_sendmmsg ? 1 : carried;
    account_space(at, carried);
  }
  auto proof = evidence(at);
  proof["asked"] = *whole;
  proof["carried"] = carried;
  return strike_with(at, strike, {.value = value}, {{"effect", "short"}}, std::move(proof));
}

base::Expected<Effects::Ended> Effects::tear(Case& at, const Strike& strike) {
  const auto most = count_parameter(strike.fault, "bytes");
  const auto whole = carried_bytes(at);
  if (!whole) return cannot(at, strike, whole.error().message);
  if (*whole <= most) return cannot(at, strike, "it carries " + std::to_string(*whole) + " bytes");
  const auto task = target(at);
  auto limited = request(at, task);
  limited.at_most = most;
  if (!find_room(at, most)) return cannot(at, strike, full_first);
  const auto done = carry_out(at, limited);
  if (!done) return done.error();
  if (!done->done || done->result <= 0) return cannot(at, strike, done->done ? "the call failed" : done->why);
  account_space(at, done->result);
  report(at, true, {{"effect", "torn"}});
  auto proof = evidence(at);
  proof["asked"] = *whole;
  proof["carried"] = done->result;
  context_.sites.fired(strike.index, std::move(proof));
  context_.crash(false);
  return Ended::yes;
}

/// Of bytes that never come into the task's memory: the supervisor moves them.
base::Expected<Effects::Ended> Effects::corrupt_on_the_way(Case& at, const Strike& strike, std::uint64_t whole) {
  const auto offset = count_parameter(strike.fault, "offset");
  // Programs ask for all that there is and more; such a call may always carry less.
  const auto most = std::min<std::uint64_t>(whole, perform_bytes);
  if (most <= offset) return cannot(at, strike, "it carries " + std::to_string(most) + " bytes");
  const auto task = target(at);
  auto wanted = request(at, task);
  wanted.answered = true;
  wanted.at_most = most;
  WrongBit wrong{offset, static_cast<unsigned>(count_parameter(strike.fault, "bit"))};
  wanted.change = [&](std::string& bytes) { wrong.strike(bytes); };
  if (!find_room(at, most)) return cannot(at, strike, full_first);
  const auto done = carry_out(at, wanted);
  if (!done) return done.error();
  if (!done->done) return cannot(at, strike, done->why);
  if (done->result < 0) return end_with(at, {.error = static_cast<int>(-done->result)});
  account_space(at, done->result);
  if (!wrong.struck || static_cast<std::uint64_t>(done->result) <= offset) return end_with(at, {.value = done->result});
  return strike_with(at, strike, {.value = done->result}, {{"effect", "corrupt"}}, wrong.added_to(evidence(at)));
}

base::Expected<Effects::Ended> Effects::corrupt(Case& at, const Strike& strike) {
  const auto offset = count_parameter(strike.fault, "offset");
  const auto whole = at.taken ? base::Expected<std::uint64_t>(at.taken->whole) : carried_bytes(at);
  if (!whole) return cannot(at, strike, whole.error().message);
  if (*whole <= offset) return cannot(at, strike, "it carries " + std::to_string(*whole) + " bytes");
  if (moves_between(at.notification.data)) return corrupt_on_the_way(at, strike, *whole);
  const auto task = target(at);
  auto wanted = request(at, task);
  wanted.answered = true;
  const auto took = take_bytes(at, strike, wanted);
  if (!took || !*took) return took ? base::Expected<Ended>(Ended::no) : took.error();
  at.taken->whole = *whole;
  auto got = at.taken->got;
  WrongBit wrong{offset, static_cast<unsigned>(count_parameter(strike.fault, "bit"))};
  wrong.strike(got.bytes);  // not when somebody else took the bytes in between
  const auto put = deliver(wanted, got);
  if (!put) return answer_fault(at, strike);
  if (!wrong.struck) return end_with(at, {.value = *put});
  return strike_with(at, strike, {.value = *put}, {{"effect", "corrupt"}}, wrong.added_to(evidence(at)));
}

/// The task's buffer could not be filled: its call fails as it would have failed without us, and nothing struck.
base::Expected<Effects::Ended> Effects::answer_fault(Case& at, const Strike& strike) {
  if (!valid(at)) return Ended::gone;
  static_cast<void>(cannot(at, strike, "the task's buffer cannot be written"));
  report(at, false);
  return end_with(at, {.error = EFAULT});
}

}  // namespace leafcutter::node
