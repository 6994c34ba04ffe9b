// Verdicts, their reasons and the program's exit codes, each defined once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leafcutter::scenarios {

/// In order of precedence when several apply: FAIL > INFRA > INCONCLUSIVE > PASS.
enum class Verdict { pass, inconclusive, infra, fail };

enum class Reason {
  held,                ///< PASS: every property held and every planned fault fired
  vacuous,             ///< PASS, qualified: a planned fault did not fire
  property_violated,   ///< FAIL
  expectation_broken,  ///< FAIL: a reply broke its own step's expectation
  nondeterminism,      ///< FAIL: the same leaf gave two different results
  timed_out,           ///< INCONCLUSIVE: the leaf's deadline passed
  not_settled,         ///< INCONCLUSIVE: an obligation was open and the leaf did not settle
  check_unavailable,   ///< INCONCLUSIVE: a state check could not be run to its end
  events_dropped,      ///< INFRA: events that a property needed are missing
  not_ready,           ///< INFRA: a service was never ready although no fault had struck it
  runner_failed,       ///< INFRA: a proxy, supervisor, recorder or namespace of ours failed
  node_lost,           ///< INFRA: the node went away
  unavailable,         ///< INFRA: this host cannot carry the plan out
};

std::string_view name(Verdict verdict);  ///< "PASS", "INCONCLUSIVE", "INFRA", "FAIL"
std::string_view name(Reason reason);    ///< "held", "property-violated", ...
Verdict verdict_of(Reason reason);
bool parse(std::string_view text, Verdict& out);
bool parse(std::string_view text, Reason& out);

struct ReasonText {
  Reason reason;
  std::string name, about, what_to_do;
};
const std::vector<ReasonText>& reasons();

namespace exit_codes {
inline constexpr int held = 0;
inline constexpr int finding = 1;
inline constexpr int bad_input = 2;
inline constexpr int inconclusive = 3;
inline constexpr int interrupted = 130;
}  // namespace exit_codes

}  // namespace leafcutter::scenarios
