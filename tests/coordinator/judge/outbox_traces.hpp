// The outbox story as two traces: the shop dies after it stored order-2 and before it announced it, and its neighbour
// in which nothing strikes.
#pragma once

#include <string>

#include "coordinator/finding.hpp"
#include "tests/coordinator/judge/trace_builder.hpp"

namespace leafcutter::coordinator::testing {

inline scenarios::Scenario outbox_scenario() { return scenario_with({order_is_announced()}); }

inline void begin_outbox(TraceBuilder& trace, const scenarios::Plan& plan) {
  trace.add("leaf", events::leaf_begin,
            {{"address", "0a1b2c3d/1/7"}, {"plan", Value::parse(scenarios::to_value(plan).dump())}});
  for (std::size_t i = 0; i < plan.faults.size(); ++i)
    trace.add("leaf", events::fault_armed, {{"fault", i}, {"kind", plan.faults[i].kind}});
  for (const auto* name : {"broker", "shop"}) {
    trace.add(name, events::start, {{"attempt", 1}, {"argv", {"bin"}}});
    trace.later(milliseconds(20)).add(name, events::ready, {{"attempt", 1}, {"after_ms", 20}});
  }
}

inline void order_comes(TraceBuilder& trace, const std::string& id) {
  trace.add("workload -> shop", events::connect,
            {{"from", "workload"}, {"to", "shop"}, {"port", "http"}, {"conn", 1}, {"accepted", true}});
  trace.add("shop", events::syscall,
            {{"call", "write"}, {"family", "write"}, {"resource", "data:orders.log"}, {"n", 1}}, "workload -> shop");
  trace.add("shop", events::log, {{"stream", "stdout"}, {"line", "stored " + id}});
}

inline TraceBuilder passing_outbox() {
  TraceBuilder trace;
  begin_outbox(trace, {});
  for (int i = 1; i <= 5; ++i) {
    const auto id = "order-" + std::to_string(i);
    order_comes(trace, id);
    trace.order(id);
  }
  return trace.settled().end();
}

inline TraceBuilder failing_outbox() {
  TraceBuilder trace;
  begin_outbox(trace, {{crash_fault()}, {}, ""});
  for (int i = 1; i <= 5; ++i) {
    const auto id = "order-" + std::to_string(i);
    order_comes(trace, id);
    trace.order(id, i != 2);
    if (i != 2) continue;
    trace.fired(0).add("shop", events::exit, {{"attempt", 1}, {"signal", 9}, {"injected", true}});
    trace.add("shop", events::start, {{"attempt", 2}, {"argv", {"bin"}}});
    trace.later(milliseconds(120)).add("shop", events::ready, {{"attempt", 2}, {"after_ms", 120}});
  }
  trace.add("leaf", events::fault_undone, {{"fault", 0}, {"how", "restarted"}});
  return trace.settled().end();
}

inline Finding outbox_finding() {
  Finding finding;
  finding.signature = "00112233aabb";
  finding.property = "an accepted order is announced";
  finding.message = "key order-2: it was accepted but never announced";
  finding.leaf = {"0a1b2c3d", 1, 7};
  finding.exemplars = {"0a1b2c3d/1/7", "0a1b2c3d/1/9"};
  finding.seen = 2;
  finding.plan = {{crash_fault()}, {}, ""};
  finding.one_minimal = finding.confirmed = finding.control_passed = true;
  finding.runs = finding.fails = 5;
  finding.failing_execution = "0a1b2c3d/1/7#2";
  finding.passing_execution = "0a1b2c3d/0/0#1";
  return finding;
}

}  // namespace leafcutter::coordinator::testing
