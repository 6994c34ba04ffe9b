// What a rule can say about which calls it strikes, and whether a call and its object have such a thing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/aim.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios::rules {

/// The keys of a rule, in the order of the docs.
struct RuleKey {
  std::string name, about;
};
const std::vector<RuleKey>& rule_keys();

/// "100", "4k", "1M", "2G": k is 1024.
std::optional<std::uint64_t> size_in(std::string_view text);

/// "100", "1..100", "4k..", "..100".
std::optional<Range> size_range_in(std::string_view text);

/// "1.5" or "150" times 10^shift as a whole number; nothing when it is none.
std::optional<std::uint64_t> decimal_in(std::string_view text, std::size_t shift);

/// "0.25", ".25", "25%": millionths, exactly. Errors name what is wrong.
base::Expected<std::uint32_t> probability_in(std::string_view text, bool may_be_zero = false);

/// The families that a name stands for: a family's own, or those that have the call.
std::vector<const SyscallFamily*> families_named(const std::string& name);

/// Why an aim at `family` cannot ask for this; empty when it can.
std::string object_refusal(const SyscallFamily& family, const std::string& object);
std::string key_refusal(const SyscallFamily& family, const std::string& key);
std::string flag_refusal(const SyscallFamily& family, const std::string& flag);
std::string kind_refusal(const SyscallFamily& family, const FaultKind& kind);

/// A fault of a whole service that strikes at an instant, and so can wait for an event.
bool strikes_after_events(const FaultKind& kind);

/// The call that was probably meant: "pwrite" is the C library's name of "pwrite64".
std::optional<std::string> near_call(const std::string& word, const std::vector<std::string>& known);

/// "; did you mean "x"?", or what there is.
std::string hint(const std::string& word, const std::vector<std::string>& known);

}  // namespace leafcutter::scenarios::rules
