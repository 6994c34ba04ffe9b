// Every fault kind, defined once: what it takes, what carries it out, what proves that it fired, how it is undone. The
// loader, the planner, the mechanisms, `leafcutter faults`, the docs table and the self-test all read this list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"

namespace leafcutter::scenarios {

using protocols::Value;

enum class Mechanism { syscall, link, process };

struct FaultParameter {
  std::string name;
  enum class Type { duration, error_name, count } type = Type::count;
  bool required = true;
  std::string about;
};

struct FaultKind {
  std::string name;  ///< "errno", "lose-response", ...
  Mechanism mechanism = Mechanism::syscall;
  std::string about;                    ///< one sentence for users
  std::vector<std::string> operations;  ///< site operations it can strike; for syscalls: family names
  bool http_only = false;               ///< needs a port with `protocol: http`
  bool kills = false;                   ///< the service dies (and its restart policy decides what follows)
  std::vector<FaultParameter> parameters = {};
  std::string evidence;    ///< what `fault.fired` carries as proof
  std::string undo;        ///< how and when it ends
  std::string capability;  ///< what the host must be able to do: "user-namespace", "syscall-notify", or empty
  int complexity = 0;      ///< simpler kinds have smaller numbers (minimization prefers them)
};

/// In a fixed order, which is also the order of candidates.
const std::vector<FaultKind>& fault_kinds();
const FaultKind* fault_kind(std::string_view name);

/// Checks `params` against the kind: unknown or missing keys, types, limits. Durations are given as text ("50ms") and
/// stay so; error names must be known.
base::Status check_params(const FaultKind& kind, const Value& params);

/// Syscall families: what one name in a scenario covers. The classes of objects a family means, too: `write` is for
/// files; sockets belong to `send`.
struct SyscallFamily {
  std::string name;
  std::vector<std::string> calls;  ///< kernel names on x86-64
  std::string object;              ///< "file" or "socket"
  std::string about;
};
const std::vector<SyscallFamily>& syscall_families();
const SyscallFamily* syscall_family(std::string_view name);

/// "EIO" -> 5; 0 when unknown. Every name of Linux's errno.h.
int error_number(std::string_view name);
std::string error_name(int number);
const std::vector<std::string>& error_names();

/// The faults table of the docs (Markdown), and of `leafcutter faults`.
std::string faults_page();

}  // namespace leafcutter::scenarios
