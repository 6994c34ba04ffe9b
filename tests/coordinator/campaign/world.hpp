// The synthetic services as a world of executions: the result of an execution is a function of its name and plan alone,
// so that flaky failures and lost nodes strike the same executions whatever the order in which they are run.
#pragma once

#include <deque>
#include <functional>

#include "base/random.hpp"
#include "coordinator/campaign/campaign.hpp"
#include "coordinator/campaign/casebook.hpp"
#include "coordinator/campaign/run_name.hpp"
#include "tests/coordinator/search/synthetic_service.hpp"

namespace leafcutter::coordinator::synthetic {

struct World {
  std::uint64_t seed = 1;
  unsigned lost_percent = 0;   ///< executions whose node is lost
  unsigned flaky_percent = 0;  ///< of a broker crash at its second step: how often "flaky" is violated
  bool once = false;           ///< "once" is violated by explored leaves with EIO at rename, and never again
  bool two_at_once = false;    ///< crash-before at fsync violates "first" and "second"
  std::function<void(const Order&, Result&)> also;  ///< changes a result further

  unsigned roll(const std::string& what) const {
    return static_cast<unsigned>(base::split_mix(seed ^ base::fnv1a(what)) % 100);
  }

  Result result(const Order& order) const {
    const auto run = parse_execution(order.execution)->run;
    auto reaction = react(order.plan);
    Result r;
    r.execution = order.execution;
    r.address = order.address.text();
    r.purpose = order.purpose;
    r.plan = order.plan;
    r.node = "node-" + std::to_string(roll("node" + order.execution) % 3);
    r.fired = reaction.fired;
    r.trace = "trace-of-" + order.execution;
    for (const auto& [site, count] : reaction.sites) r.sites.push_back({site, count});
    for (std::size_t i = 0; i < order.plan.faults.size(); ++i) {
      const auto& f = order.plan.faults[i];
      if (!r.fired[i]) continue;
      if (f.kind == "crash" && f.site.lane == "broker" && f.occurrence == 2 && roll("flaky" + run) < flaky_percent)
        reaction.violated.push_back("flaky");
      if (once && f.kind == "errno" && f.site.operation == "rename" && f.params["error"] == "EIO" && run.ends_with('#'))
        reaction.violated.push_back("once");
      if (two_at_once && f.kind == "crash-before" && f.site.operation == "fsync")
        reaction.violated.insert(reaction.violated.end(), {"first", "second"});
    }
    const bool all = std::all_of(r.fired.begin(), r.fired.end(), [](bool fired) { return fired; });
    r.reason = !reaction.violated.empty() ? scenarios::Reason::property_violated
               : all                      ? scenarios::Reason::held
                                          : scenarios::Reason::vacuous;
    for (const auto& property : reaction.violated)
      r.violations.push_back({property, property + " is broken in " + order.execution, "", {}});
    if (roll("lost" + order.execution) < lost_percent) {
      r.fired.clear();
      r.sites.clear();
      r.violations.clear();
      r.reason = scenarios::Reason::node_lost;
    }
    r.verdict = r.violations.empty()
                    ? r.reason == scenarios::Reason::node_lost ? scenarios::Verdict::infra : scenarios::Verdict::pass
                    : scenarios::Verdict::fail;
    if (also) also(order, r);
    return r;
  }
};

/// A coordinator's bookkeeping around a campaign and its casebook: what is durable and what is under way.
struct Keeper {
  Scenario scenario;
  World world;
  Campaign campaign;
  Casebook casebook;
  std::deque<std::function<Inquired()>> unanswered;  ///< what the casebook was told and did not answer yet
  bool prompt = true;                                ///< it answers at once; otherwise when answer() is called
  std::vector<EpochHeader> epochs;
  std::vector<Result> results;
  std::map<std::string, Finding> findings;
  std::vector<Order> queue;
  std::vector<std::string> dropped;
  std::map<std::string, Plan> executed;
  std::string state = "running", detail;
  bool finished = false;

  Keeper(Scenario s, World w) : scenario(s), world(std::move(w)), campaign(std::move(s), "identity", 7) {
    follow(campaign.start());
  }

  void follow(const Actions& actions) {
    epochs.insert(epochs.end(), actions.new_epochs.begin(), actions.new_epochs.end());
    for (const auto& finding : actions.findings) findings[finding.signature] = finding;
    state = actions.state;
    detail = actions.detail;
    finished = actions.finished;
    if (!actions.cases.empty()) unanswered.push_back([this, cases = actions.cases] { return casebook.open(cases); });
    for (const auto& result : actions.follow_ups)
      unanswered.push_back([this, result] { return casebook.take(result); });
    // Before what is explored next: the dispatcher has the same order.
    while (prompt && !unanswered.empty()) answer();
    queue.insert(queue.end(), actions.orders.begin(), actions.orders.end());
    for (const auto& execution : actions.dropped) {
      dropped.push_back(execution);
      std::erase_if(queue, [&](const Order& order) { return order.execution == execution; });
    }
  }

  /// The casebook answers the oldest.
  void answer() {
    const auto oldest = std::move(unanswered.front());
    unanswered.pop_front();
    follow(campaign.inquired(oldest()));
  }

  /// Runs the order at `index` of the queue.
  void run(std::size_t index) {
    const auto order = queue.at(index);
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
    executed[order.execution] = order.plan;
    const auto result = world.result(order);
    if (!campaign.wants(order.execution)) return;
    results.push_back(result);
    follow(campaign.accepted(result));
  }

  /// In the order given, to the end.
  void run_all() {
    for (int steps = 0; !queue.empty() && steps < 100000; ++steps) run(0);
  }

  /// As after a crash: what was under way is forgotten, what is durable is read again.
  void restart() {
    campaign = Campaign(scenario, "identity", 7);
    casebook = Casebook();
    unanswered.clear();
    for (const auto& result : results)
      if (result.purpose != Purpose::explore) casebook.remember(result);
    campaign.restore(epochs, results, [&] {
      std::vector<Finding> list;
      for (const auto& [of, finding] : findings) list.push_back(finding);
      return list;
    }());
    queue.clear();
    follow(campaign.start());
  }

  const Finding* of(const std::string& property) const {
    for (const auto& [signature, finding] : findings)
      if (finding.property == property) return &finding;
    return nullptr;
  }
};

}  // namespace leafcutter::coordinator::synthetic
