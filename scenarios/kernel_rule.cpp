#include "scenarios/kernel_rule.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr std::array<std::string_view, 9> calls_of_any_object = {"nanosleep",     "clock_nanosleep", "getrandom",
                                                                 "clock_gettime", "gettimeofday",    "time",
                                                                 "connect",       "accept",          "accept4"};
constexpr std::array<std::string_view, 5> calls_of_files_only = {"fsync", "fdatasync", "sync_file_range", "syncfs",
                                                                 "fallocate"};

bool needs_no_look(const std::string& call, Scope scope) {
  if (std::ranges::find(calls_of_any_object, call) != calls_of_any_object.end()) return true;
  return scope == Scope::program && std::ranges::find(calls_of_files_only, call) != calls_of_files_only.end();
}

std::string what_narrows(const Aim& aim) {
  if (!aim.path.empty()) return "its path";
  if (!aim.peer.empty()) return "its peer";
  if (!aim.object.empty()) return "its object";
  if (aim.size) return "its size";
  if (aim.offset) return "its offset";
  if (!aim.flags.empty()) return "its flags";
  if (!aim.after.empty()) return "the event that it waits for";
  if (aim.per_million < 1'000'000) return "its probability";
  if (aim.occurrences != Occurrences{}) return "its occurrences (" + aim.occurrences.text() + ")";
  return "";
}

}  // namespace

KernelRule kernel_rule(const Fault& fault, Scope scope) {
  KernelRule out;
  const auto* family = syscall_family(fault.site.operation);
  if (!fault.aim || !fault.aim->uncounted || family == nullptr) {
    out.why_not = "it does not say uncounted";
    return out;
  }
  if (fault.kind != "errno" || fault.params.contains("late")) {
    out.why_not = "only an error without `late` needs nobody to carry it out";
    return out;
  }
  if (const auto narrowed = what_narrows(*fault.aim); !narrowed.empty()) {
    out.why_not = "the kernel cannot look at " + narrowed;
    return out;
  }
  for (const auto& call : family->calls)
    if ((fault.aim->call.empty() || fault.aim->call == call) && needs_no_look(call, scope)) out.calls.push_back(call);
  if (out.calls.empty()) {
    out.why_not = "which " + family->object + " a call of " +
                  (fault.aim->call.empty() ? family->name : fault.aim->call) + " acts on must be looked at";
    return out;
  }
  out.error = error_number(fault.params.value("error", ""));
  if (out.error <= 0) {
    out.calls.clear();
    out.why_not = "its error is not known";
  }
  return out;
}

}  // namespace leafcutter::scenarios
