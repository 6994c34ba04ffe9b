#include "node/syscalls/filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "node/syscalls/gate.hpp"
#include "node/syscalls/handover.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

constexpr std::size_t kernel_limit = 4096;  // BPF_MAXINSNS

constexpr auto arch_offset = offsetof(seccomp_data, arch);
constexpr auto number_offset = offsetof(seccomp_data, nr);
constexpr auto arguments_offset = offsetof(seccomp_data, args);

sock_filter load(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
sock_filter leave(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter unless_equal(std::uint32_t value, std::size_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(skip));
}

/// Only native calls are told apart by number; a filter that let the others pass would observe half of what happens.
/// Number -1 is no call: a tracer puts it there to skip one.
void append_prologue(std::vector<sock_filter>& program) {
  program.push_back(load(arch_offset));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  program.push_back(leave(SECCOMP_RET_USER_NOTIF));
  program.push_back(load(number_offset));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32_bit, 0, 3));
  program.push_back(unless_equal(0xffffffffu, 1));
  program.push_back(leave(SECCOMP_RET_ALLOW));
  program.push_back(leave(SECCOMP_RET_USER_NOTIF));
}

/// Allows call `number` when arguments 3 to 5 carry the hand-over's mark (compared as 32-bit halves, low half first).
void append_exemption(std::vector<sock_filter>& program, int number) {
  const auto comparisons = handover_mark.size() * 2;
  const auto length = comparisons * 2 + 1;
  program.push_back(unless_equal(static_cast<std::uint32_t>(number), length + 1));
  for (std::size_t half = 0; half < comparisons; ++half) {
    const auto value = handover_mark.at(half / 2) >> (half % 2 == 0 ? 0 : 32);
    program.push_back(load(arguments_offset + 3 * sizeof(std::uint64_t) + half * sizeof(std::uint32_t)));
    program.push_back(unless_equal(static_cast<std::uint32_t>(value), (comparisons - half - 1) * 2 + 1));
  }
  program.push_back(leave(SECCOMP_RET_ALLOW));
  program.push_back(load(number_offset));
}

base::Expected<int> call_number(const std::string& name) {
  const auto number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name.c_str());
  if (number < 0)
    return base::Error{
        base::ErrorCode::internal, "system call \"" + name + "\" is not known to libseccomp on x86-64", {}};
  return number;
}

/// What the filter returns for each call that is not simply allowed.
base::Expected<std::map<int, std::uint32_t>> actions_of(const FilterPlan& plan) {
  std::map<int, std::uint32_t> actions;
  for (const auto& name : plan.families) {
    const auto* family = scenarios::syscall_family(name);
    if (family == nullptr)
      return base::Error{base::ErrorCode::bad_input, "unknown system call family \"" + name + "\"", {}};
    for (const auto& call : family->calls) {
      const auto number = call_number(call);
      if (!number) return number.error();
      actions[*number] = SECCOMP_RET_USER_NOTIF;
    }
  }
  for (const auto& [call, error] : plan.answers) {
    const auto number = call_number(call);
    if (!number) return number.error();
    if (std::ranges::find(handover_calls, call) != handover_calls.end())
      return base::Error{base::ErrorCode::internal, "the filter's own hand-over needs " + call, {}};
    actions[*number] = SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
  }
  const auto io_uring = call_number("io_uring_setup");
  if (!io_uring) return io_uring.error();
  actions[*io_uring] = SECCOMP_RET_USER_NOTIF;
  return actions;
}

}  // namespace

// libseccomp resolves the names; the program itself is laid out here, because libseccomp 2.5 refuses a rule whose
// action is the default one (the hand-over's exemption). One straight line: a jump never spans more than a few
// instructions, so no set of families can overflow its eight bits, and the kernel answers calls that are always allowed
// from a bitmap without running it.
base::Expected<std::vector<sock_filter>> build_filter(const FilterPlan& plan) {
  std::vector<sock_filter> program;
  if (plan.empty()) return program;
#if !defined(__x86_64__)
  return base::Error{base::ErrorCode::unavailable, "system call faults are written for x86-64 only", {}};
#endif
  const auto actions = actions_of(plan);
  if (!actions) return actions.error();
  append_prologue(program);
  for (const auto* name : handover_calls) {
    const auto number = call_number(name);
    if (!number) return number.error();
    if (actions->contains(*number)) append_exemption(program, *number);
  }
  for (const auto& [number, action] : *actions) {
    program.push_back(unless_equal(static_cast<std::uint32_t>(number), 1));
    program.push_back(leave(action));
  }
  program.push_back(leave(SECCOMP_RET_ALLOW));
  if (program.size() > kernel_limit)
    return base::Error{base::ErrorCode::internal, "the filter has more instructions than the kernel takes", {}};
  return program;
}

}  // namespace leafcutter::node
