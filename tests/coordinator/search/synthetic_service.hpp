// A pretended pair of services whose every reaction is a pure function of the plan: what the pure cores are tested
// against. It has recovery paths (sites that exist only after a fault), a bug that one fault shows and a bug that takes
// two.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "coordinator/search/epochs.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/model.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::coordinator::synthetic {

inline const std::string link = "shop -> broker";
inline const std::string lost = "an accepted order is announced";
inline const std::string twice = "an order is announced at most once";

inline Scenario scenario(unsigned at_once = 2, unsigned occurrences = 3, std::uint64_t leaves = 2000) {
  Scenario s;
  s.name = "synthetic";
  for (const auto* family : {"write", "fsync", "rename", "open"})
    for (const auto* error : {"EIO", "ENOSPC"})
      s.explore.faults.push_back({"errno", "shop", family, "", {{"error", error}}});
  for (const auto* family : {"write", "fsync", "rename", "open"})
    for (const auto* kind : {"crash-before", "crash-after"})
      s.explore.faults.push_back({kind, "shop", family, "", Value::object()});
  s.explore.faults.push_back({"refuse", link, "connect", "", Value::object()});
  for (const auto* kind : {"reset", "blackhole", "lose-response"})
    s.explore.faults.push_back({kind, link, "request", "", Value::object()});
  s.explore.faults.push_back({"latency", link, "request", "", {{"for", "2s"}}});
  for (const auto* lane : {"shop", "broker"}) s.explore.faults.push_back({"crash", lane, "step", "", Value::object()});
  s.explore.at_once = at_once;
  s.explore.occurrences = occurrences;
  s.explore.max_leaves = leaves;
  s.explore.seed = 7;
  return s;
}

struct Reaction {
  std::map<scenarios::Site, std::uint32_t> sites;
  std::vector<bool> fired;
  std::vector<std::string> violated;  ///< properties
};

inline std::map<scenarios::Site, std::uint32_t> calm() {
  return {{{"shop", "write", "data:orders.log"}, 5},
          {{"shop", "fsync", "data:orders.log"}, 5},
          {{"shop", "rename", "data:index"}, 1},
          {{"shop", "open", "/etc/hosts"}, 1},
          {{"shop", "step", "post shop/orders"}, 5},
          {{"broker", "step", "post shop/orders"}, 5},
          {{link, "connect", "tcp"}, 1},
          {{link, "request", "POST /announce"}, 5}};
}

inline bool kills(const Fault& fault) { return fault.kind.starts_with("crash"); }

inline Reaction react(const Plan& plan) {
  Reaction r;
  r.sites = calm();
  // Faults that fired change what is visited, which may let others fire: to a fixed point, at most once for each fault.
  std::vector<bool> done(plan.faults.size(), false);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      const auto& fault = plan.faults[i];
      const auto found = r.sites.find(fault.site);
      if (done[i] || found == r.sites.end() || found->second < fault.occurrence) continue;
      done[i] = moved = true;
      if (kills(fault))
        r.sites[{fault.site.lane, "open", "data:orders.log"}] += 1;  // recovery
      else if (fault.site.operation == "request")
        r.sites[{link, "request", "POST /announce"}] += 1;  // a retry
      else if (fault.site.operation == "fsync")
        r.sites[fault.site] = fault.occurrence;  // it gives up
    }
  }
  r.fired = done;
  bool crash_after_write = false, lost_reply = false, retry_struck = false;
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    const auto& fault = plan.faults[i];
    if (!done[i]) continue;
    crash_after_write |= fault.kind == "crash-after" && fault.site.operation == "write";
    lost_reply |= fault.kind == "lose-response";
    retry_struck |= fault.site.operation == "request" && fault.occurrence > 5;
  }
  if (crash_after_write) r.violated.push_back(lost);
  if (lost_reply && retry_struck) r.violated.push_back(twice);
  return r;
}

inline LeafOutcome outcome(const Plan& plan) {
  const auto r = react(plan);
  LeafOutcome out;
  for (const auto& [site, count] : r.sites) out.sites.push_back({site, count});
  out.fired = r.fired;
  const bool all = std::all_of(r.fired.begin(), r.fired.end(), [](bool fired) { return fired; });
  out.reason = !r.violated.empty() ? scenarios::Reason::property_violated
               : all               ? scenarios::Reason::held
                                   : scenarios::Reason::vacuous;
  out.verdict = r.violated.empty() ? scenarios::Verdict::pass : scenarios::Verdict::fail;
  return out;
}

}  // namespace leafcutter::coordinator::synthetic
