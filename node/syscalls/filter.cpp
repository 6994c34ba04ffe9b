#include "node/syscalls/filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <set>

#include "node/syscalls/handover.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

constexpr std::uint32_t x32_bit = 0x40000000u;
constexpr std::size_t kernel_limit = 4096;  // BPF_MAXINSNS

constexpr auto arch_offset = offsetof(seccomp_data, arch);
constexpr auto number_offset = offsetof(seccomp_data, nr);
constexpr auto arguments_offset = offsetof(seccomp_data, args);

sock_filter load(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
sock_filter leave(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter unless_equal(std::uint32_t value, std::size_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(skip));
}

/// Only native calls are seen by number; a filter that let the others pass would observe half of what happens. Number
/// -1 is no call: a tracer puts it there to skip one.
void append_prologue(std::vector<sock_filter>& program) {
  program.push_back(load(arch_offset));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  program.push_back(leave(SECCOMP_RET_KILL_PROCESS));
  program.push_back(load(number_offset));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32_bit, 0, 3));
  program.push_back(unless_equal(0xffffffffu, 1));
  program.push_back(leave(SECCOMP_RET_ALLOW));
  program.push_back(leave(SECCOMP_RET_KILL_PROCESS));
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

base::Expected<std::set<int>> numbers_of(const std::vector<std::string>& families) {
  std::set<int> numbers;
  for (const auto& name : families) {
    const auto* family = scenarios::syscall_family(name);
    if (family == nullptr)
      return base::Error{base::ErrorCode::bad_input, "unknown system call family \"" + name + "\"", {}};
    for (const auto& call : family->calls) {
      const auto number = call_number(call);
      if (!number) return number.error();
      numbers.insert(*number);
    }
  }
  return numbers;
}

}  // namespace

// libseccomp resolves the names; the program itself is laid out here, because libseccomp 2.5 refuses a rule whose
// action is the default one (the hand-over's exemption). One straight line: a jump never spans more than a few
// instructions, so no set of families can overflow its eight bits, and the kernel answers calls that are always allowed
// from a bitmap without running it.
base::Expected<std::vector<sock_filter>> build_filter(const std::vector<std::string>& families) {
  std::vector<sock_filter> program;
  if (families.empty()) return program;
#if !defined(__x86_64__)
  return base::Error{base::ErrorCode::unavailable, "system call faults are written for x86-64 only", {}};
#endif
  const auto numbers = numbers_of(families);
  if (!numbers) return numbers.error();
  append_prologue(program);
  for (const auto* name : handover_calls) {
    const auto number = call_number(name);
    if (!number) return number.error();
    if (numbers->contains(*number)) append_exemption(program, *number);
  }
  const auto io_uring = call_number("io_uring_setup");
  if (!io_uring) return io_uring.error();
  program.push_back(unless_equal(static_cast<std::uint32_t>(*io_uring), 1));
  program.push_back(leave(SECCOMP_RET_ERRNO | ENOSYS));
  for (const auto number : *numbers) {
    program.push_back(unless_equal(static_cast<std::uint32_t>(number), 1));
    program.push_back(leave(SECCOMP_RET_USER_NOTIF));
  }
  program.push_back(leave(SECCOMP_RET_ALLOW));
  if (program.size() > kernel_limit)
    return base::Error{base::ErrorCode::internal, "the filter has more instructions than the kernel takes", {}};
  return program;
}

}  // namespace leafcutter::node
