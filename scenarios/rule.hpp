// Rules: faults on one line, nearly all of system calls, for `leafcutter exec` and for the `rules` of a scenario.
// (Those of links, which a scenario's `rules` may hold too, are read in link_rule.hpp.)
//
//   CALL=EFFECT[:ARGUMENT[,ARGUMENT]] [key=value]... [#n | first n | every n | from n] [uncounted]
//   KIND[:ARGUMENT] after=EVENT [service=NAME]     a fault of a whole service, in a scenario
//
// "fsync=EIO path=*.wal #2", "write=short:100 object=file size=1k.. every 3", "connect=ETIMEDOUT:2s peer=broker".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/event_pattern.hpp"
#include "scenarios/kernel_rule.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/words.hpp"

namespace leafcutter::scenarios {

/// Where a rule is written, and what it may speak of there.
struct RuleScope {
  std::string lane;                   ///< what it strikes when it names no service
  std::vector<std::string> services;  ///< those that `service=` may name; none: the key does not exist here
  EventScope events;                  ///< for `after` and `until`
  Scope kernel = Scope::leaf;         ///< where `uncounted` is about
  std::string without_image;          ///< why kinds that need to know what was synced cannot be used; empty: they can
};

/// The fault that a rule stands for; its aim is set, with seed 0. Nothing: `mistake` says why and where.
std::optional<Fault> read_rule(std::string_view text, const RuleScope& scope, Mistake& mistake);

/// The rule that read_rule(), or read_link_rule(), makes this fault of, written in one way only. The lane is left out.
std::string rule_text(const Fault& fault);

/// The families of system calls that must be seen, in the fault's own lane, for the rule to work.
std::vector<std::string> families_of(const Fault& fault);

/// The event patterns that a rule waits for (`after`, `until`), as written.
std::vector<std::string> event_patterns_of(const Fault& fault);

/// The families of the system calls that those patterns name, by family or by call: no event without being seen.
std::vector<std::string> families_awaited(const Fault& fault);

/// How rules are written, for the docs (Markdown).
std::string rules_section();

}  // namespace leafcutter::scenarios
