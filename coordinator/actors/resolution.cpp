#include "coordinator/actors/resolution.hpp"

#include <exception>

namespace leafcutter::coordinator {

namespace {

using actors::LeafOrder;
using actors::LeafReport;

Purpose purpose_of(std::string_view text) {
  for (const auto purpose :
       {Purpose::explore, Purpose::confirm, Purpose::control, Purpose::minimize, Purpose::replay}) {
    if (name(purpose) == text) return purpose;
  }
  return Purpose::explore;
}

Result blank(const LeafOrder& order) {
  Result result;
  result.execution = order.execution;
  result.address = order.address;
  result.purpose = purpose_of(order.purpose);
  if (const auto packed = protocols::unpack(order.plan)) {
    if (auto plan = scenarios::plan_from(*packed)) result.plan = std::move(*plan);
  }
  result.fired.assign(result.plan.faults.size(), false);
  return result;
}

void fail(Result& result, scenarios::Reason reason, std::string detail) {
  result.verdict = scenarios::verdict_of(reason);
  result.reason = reason;
  result.detail = std::move(detail);
}

void judge_into(Result& result, const scenarios::Scenario& scenario, const std::vector<protocols::Event>& events) {
  auto judgement = judge(scenario, result.plan, events);
  result.verdict = judgement.verdict;
  result.reason = judgement.reason;
  result.detail = std::move(judgement.detail);
  result.fired = std::move(judgement.fired);
  result.violations = std::move(judgement.violations);
  result.sites = sites_of(events);
}

}  // namespace

Result resolve(const scenarios::Scenario& scenario, const LeafOrder& order, const LeafReport& report,
               const FinishedTrace& trace) {
  auto result = blank(order);
  result.node = report.slot;
  result.events = trace.events;
  result.wall_ms = report.wall_ms;
  if (!report.clean) {
    fail(result, scenarios::Reason::runner_failed,
         report.detail.empty() ? "the leaf ended without a reason" : report.detail);
    return result;
  }
  if (!trace.complete || trace.events < report.events) {
    fail(result, scenarios::Reason::runner_failed,
         "the trace is not whole: " + std::to_string(trace.events) + " of " + std::to_string(report.events) +
             " events came");
    return result;
  }
  try {
    const auto events = protocols::decode_chunks(trace.chunks);
    if (!events) {
      fail(result, scenarios::Reason::runner_failed, "the trace cannot be read: " + events.error().text());
      return result;
    }
    judge_into(result, scenario, *events);
  } catch (const std::exception& error) {
    fail(result, scenarios::Reason::runner_failed, std::string("judging the trace failed: ") + error.what());
  }
  return result;
}

Result lost(const LeafOrder& order) {
  auto result = blank(order);
  fail(result, scenarios::Reason::node_lost, "every node that had it leased went away or fell silent");
  return result;
}

LeafOrder to_leaf_order(std::string execution, const scenarios::Address& address, Purpose purpose,
                        const scenarios::Plan& plan, std::string avoid_slot) {
  LeafOrder order;
  order.execution = std::move(execution);
  order.address = address.text();
  order.purpose = name(purpose);
  order.plan = protocols::pack(scenarios::to_value(plan));
  order.avoid_slot = std::move(avoid_slot);
  return order;
}

}  // namespace leafcutter::coordinator
