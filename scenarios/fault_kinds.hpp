// Every fault kind, defined once: what it takes, what carries it out, what proves that it fired, how it is undone. The
// loader, the planner, the mechanisms, `leafcutter faults`, the docs table and the self-test all read this list.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"

namespace leafcutter::scenarios {

using protocols::Value;

enum class Mechanism { syscall, link, process, dns };

struct FaultParameter {
  std::string name;
  enum class Type {
    duration,         ///< "50ms"; more than nothing, at most an hour
    signed_duration,  ///< the same, "-5m" too; at most 100 years
    error_name,       ///< "EIO"
    count,            ///< a whole number, least..most
    event,            ///< an event pattern: "reply from=shop status=201"
    word,             ///< one of `words`
    decimal,          ///< "0.25", as text; least..most millionths
    names,            ///< a list of services (and the workload); not written as a parameter: the target says them
  } type = Type::count;
  bool required = true;
  std::string about;
  std::uint64_t least = 1, most = 1'000'000'000'000;  ///< count, decimal
  std::vector<std::string> words = {};                ///< word
  bool of_stream = false;  ///< given: the fault is one of the connection's bytes, see FaultKind::stream
};

struct FaultKind {
  std::string name;  ///< "errno", "lose-response", ...
  Mechanism mechanism = Mechanism::syscall;
  std::string about;                    ///< one sentence for users
  std::vector<std::string> operations;  ///< site operations it can strike; for syscalls: family names
  bool http_only = false;               ///< needs a port with `protocol: http`
  /// Strikes the bytes of a connection whatever they mean, also where requests can be told apart; carried out by the
  /// network fault engine (node/proxy).
  bool stream = false;
  bool connections = true;                ///< link: exists on ports of tcp and http
  bool datagrams = false;                 ///< link: exists on ports of udp
  bool between = false;                   ///< link: strikes whatever passes between two sets of services
  bool at_opening = false;                ///< link: strikes before a connection is open
  bool from_byte = false;                 ///< link: what strikes can begin at any byte of a connection
  bool kills = false;                     ///< the service dies (and its restart policy decides what follows)
  bool lasting = false;                   ///< from its visit of the site on, to the leaf's end
  bool needs_image = false;               ///< what was synced must be known: see node/syscalls/durable_image.hpp
  std::vector<std::string> watches = {};  ///< families that must be seen, too, wherever it strikes
  std::vector<FaultParameter> parameters = {};
  std::vector<std::string> some_of = {};  ///< at least one of these parameters must be given
  /// What is wrong with parameters that are each right by themselves; empty: nothing.
  std::string (*refusal)(const Value& params) = nullptr;
  std::string evidence;    ///< what `fault.fired` carries as proof
  std::string undo;        ///< how and when it ends
  std::string capability;  ///< what the host must be able to do: "user-namespace", "syscall-notify", or empty
  int complexity = 0;      ///< simpler kinds have smaller numbers (minimization prefers them)
};

/// In a fixed order, which is also the order of candidates.
const std::vector<FaultKind>& fault_kinds();
const FaultKind* fault_kind(std::string_view name);

/// The rows of links.
std::vector<FaultKind> link_fault_kinds();
/// What the docs say of them beyond the table (Markdown).
std::string links_section();

/// Whether the fault is one of a connection's bytes: its kind always is, or these parameters make it one.
bool strikes_stream(const FaultKind& kind, const Value& params);

/// The value of a decimal: "0.25" is 250'000 millionths.
std::optional<std::uint64_t> parse_millionths(std::string_view text);
/// The rows of name resolution.
std::vector<FaultKind> dns_fault_kinds();

/// Checks `params` against the kind: unknown or missing keys, types, limits. Durations are given as text ("50ms") and
/// stay so; error names must be known.
base::Status check_params(const FaultKind& kind, const Value& params);
base::Status check_param(const FaultKind& kind, const FaultParameter& parameter, const Value& value);

/// Syscall families: what one name in a scenario covers. The classes of objects a family means, too: `write` is for
/// files; sockets belong to `send`.
struct SyscallFamily {
  std::string name;
  std::vector<std::string> calls;  ///< kernel names on x86-64
  std::string object;              ///< "file", "socket" or "process" (calls that act on nothing)
  std::string about;
  /// Those of them that move bytes from one object to another, of which the family means the one that they come from.
  /// (All other families mean the one that they go to.)
  std::vector<std::string> sources = {};
};
const std::vector<SyscallFamily>& syscall_families();
const SyscallFamily* syscall_family(std::string_view name);
/// The object classes (aim.hpp) that an aim at this family can ask for.
std::vector<std::string> classes_of(const SyscallFamily& family);

/// "5m", "-5m": the value of a signed duration.
std::optional<std::chrono::nanoseconds> parse_offset(std::string_view text);

/// "EIO" -> 5, and a number as it is (up to 4095, the kernel's last); 0 when unknown. Every name of Linux's errno.h.
int error_number(std::string_view name);
std::string error_name(int number);
const std::vector<std::string>& error_names();

/// The faults table of the docs (Markdown), and of `leafcutter faults`.
std::string faults_page();

}  // namespace leafcutter::scenarios
