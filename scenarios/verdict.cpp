#include "scenarios/verdict.hpp"

namespace leafcutter::scenarios {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "PASS";
    case Verdict::inconclusive: return "INCONCLUSIVE";
    case Verdict::infra: return "INFRA";
    case Verdict::fail: return "FAIL";
  }
  return "?";
}

const std::vector<ReasonText>& reasons() {
  static const std::vector<ReasonText> list = {
      {Reason::held, "held", "every property held and every planned fault fired", ""},
      {Reason::vacuous, "vacuous", "every property held, but a planned fault did not fire, so this says little",
       "look at which site the fault was planned for: the run did not reach it"},
      {Reason::property_violated, "property-violated", "a property did not hold", "read the finding's explanation"},
      {Reason::expectation_broken, "expectation-broken", "a reply broke the expectation of its own workload step",
       "a service may refuse under faults, it may not answer wrongly; allow the answer in `expect` if it is right"},
      {Reason::nondeterminism, "nondeterminism", "the same leaf gave two different results",
       "something outside the plan decides the outcome: compare the two traces"},
      {Reason::timed_out, "timed-out", "the leaf's deadline passed before the workload ended",
       "raise explore.leaf-timeout, or find out what it waited for in the leaf's detail"},
      {Reason::not_settled, "not-settled", "an obligation was open and the system never came to rest",
       "raise `within` of the settle step, or make background work finite"},
      {Reason::check_unavailable, "check-unavailable", "a state check could not be run to its end",
       "run the check's command by hand on a good data folder"},
      {Reason::events_dropped, "events-dropped", "events that a property needed were dropped",
       "the host was overloaded: use fewer slots"},
      {Reason::not_ready, "not-ready", "a service was never ready although no fault had struck",
       "start the service by hand; check its `ready` probe and `within`"},
      {Reason::runner_failed, "runner-failed", "a part of Leafcutter failed in this leaf",
       "run `leafcutter doctor`; report it with the leaf's detail"},
      {Reason::node_lost, "node-lost", "the node went away while it ran this leaf", "look at the node's own log"},
      {Reason::unavailable, "unavailable", "this host cannot carry the plan out", "run `leafcutter doctor`"},
  };
  return list;
}

std::string_view name(Reason reason) {
  for (const auto& entry : reasons())
    if (entry.reason == reason) return entry.name;
  return "?";
}

Verdict verdict_of(Reason reason) {
  switch (reason) {
    case Reason::held:
    case Reason::vacuous: return Verdict::pass;
    case Reason::property_violated:
    case Reason::expectation_broken:
    case Reason::nondeterminism: return Verdict::fail;
    case Reason::timed_out:
    case Reason::not_settled:
    case Reason::check_unavailable: return Verdict::inconclusive;
    case Reason::events_dropped:
    case Reason::not_ready:
    case Reason::runner_failed:
    case Reason::node_lost:
    case Reason::unavailable: return Verdict::infra;
  }
  return Verdict::infra;
}

bool parse(std::string_view text, Verdict& out) {
  for (const auto verdict : {Verdict::pass, Verdict::inconclusive, Verdict::infra, Verdict::fail})
    if (text == name(verdict)) {
      out = verdict;
      return true;
    }
  return false;
}

bool parse(std::string_view text, Reason& out) {
  for (const auto& entry : reasons())
    if (text == entry.name) {
      out = entry.reason;
      return true;
    }
  return false;
}

}  // namespace leafcutter::scenarios
