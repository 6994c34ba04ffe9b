// Rules of links: a fault of connections, sessions or requests on one line, for the `rules` of a scenario.
//
//   KIND[:ARGUMENT[,ARGUMENT]] [key=value]... [#n | first n | every n | from n]
//
// "reset caller=shop #2", "latency:50ms message=3.. after=\"ready service=db\"", "bandwidth:10k after-bytes=1M".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/event_pattern.hpp"
#include "scenarios/model.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/words.hpp"

namespace leafcutter::scenarios {

/// The two sides of a partition, and the links that lead across.
struct Parting {
  std::vector<std::string> first, second;
  std::vector<Link> across;
};

/// What a rule may strike where it is written.
struct LinkRuleScope {
  std::vector<Link> links;
  std::vector<Parting> between;
  EventScope events;  ///< for `after` and `until`
};

/// The line begins as a rule of links does: with the name of such a kind.
bool names_link_kind(std::string_view text);

/// The faults that a rule stands for, one for each link that it leaves (of a partition: for each parting, or each
/// link where one may begin); their aim is set, with seed 0. Nothing: `mistake` says why and where.
std::optional<std::vector<Fault>> read_link_rule(std::string_view text, const LinkRuleScope& scope, Mistake& mistake);

/// The rule that read_link_rule() makes this fault of, written in one way only. Which links are left out.
std::string link_rule_text(const Fault& fault);

/// How such rules are written, for the docs (Markdown).
std::string link_rules_section();

}  // namespace leafcutter::scenarios
