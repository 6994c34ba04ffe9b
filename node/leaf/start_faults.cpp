#include "node/leaf/start_faults.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "scenarios/fault_kinds.hpp"
#include "scenarios/reach.hpp"

namespace leafcutter::node {
namespace {

constexpr const char* start_operation = "start";

struct LimitKind {
  const char* kind;
  int resource;
  const char* parameter;
};
constexpr LimitKind limit_kinds[] = {{"limit-files", RLIMIT_NOFILE, "count"},
                                     {"limit-memory", RLIMIT_AS, "bytes"},
                                     {"limit-processes", RLIMIT_NPROC, "count"}};

const LimitKind* limit_of(const std::string& kind) {
  const auto* found = std::find_if(std::begin(limit_kinds), std::end(limit_kinds),
                                   [&](const auto& known) { return known.kind == kind; });
  return found == std::end(limit_kinds) ? nullptr : found;
}

}  // namespace

StartFaults::StartFaults(LeafContext& context, std::string service)
    : context_(context),
      service_(std::move(service)),
      counted_(scenarios::can_strike(context.scenario, context.job.plan, service_, start_operation)) {}

StartConditions StartFaults::about_to_start() {
  StartConditions conditions;
  striking_.clear();
  if (!counted_) return conditions;
  striking_ = context_.sites.visit({service_, start_operation, start_operation}).strikes;
  for (const auto& hit : striking_) {
    const auto& params = hit.fault.params;
    if (const auto* limit = limit_of(hit.fault.kind); limit != nullptr) {
      const auto value = params.value(limit->parameter, std::uint64_t{0});
      const auto [known, fresh] = conditions.limits.try_emplace(limit->resource, value);
      if (!fresh) known->second = std::min(known->second, value);
    } else if (hit.fault.kind == "clock-offset") {
      const auto by = scenarios::parse_offset(params.value("by", ""));
      conditions.clock_offset =
          conditions.clock_offset.value_or(std::chrono::nanoseconds(0)) + by.value_or(std::chrono::nanoseconds(0));
    } else {
      context_.fail("runner-failed", "nothing carries out \"" + hit.fault.kind + "\" at the start of a service");
    }
  }
  return conditions;
}

void StartFaults::started(const StartEvidence& seen) {
  for (const auto& hit : striking_) {
    Value evidence = {{"pid", seen.pid}};
    if (const auto* limit = limit_of(hit.fault.kind); limit != nullptr) {
      const auto found = seen.limits.find(limit->resource);
      if (found == seen.limits.end()) continue;
      evidence.update(
          {{"limit", limit_name(limit->resource)}, {"soft", found->second.soft}, {"hard", found->second.hard}});
    } else {
      evidence.update({{"monotonic_offset_ns", seen.monotonic.count()}, {"boottime_offset_ns", seen.boottime.count()}});
    }
    context_.sites.fired(hit.index, std::move(evidence));
  }
}

void StartFaults::ended() {
  for (const auto& hit : std::exchange(striking_, {}))
    context_.sites.undone(hit.index, "the process that was started with it has ended");
}

}  // namespace leafcutter::node
