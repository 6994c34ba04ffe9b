#include "coordinator/judge/ending.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "coordinator/judge/attributes.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::coordinator {

namespace events = scenarios::events;
using scenarios::Reason;

void Ending::see(const protocols::Event& event) {
  last_ = std::max(last_, event.at);
  const std::string_view kind = event.kind;
  if (kind == events::ready) {
    last_ready_ = std::max(last_ready_, event.at);
    down_.erase(event.lane);
  } else if (kind == events::exit) {
    down_.insert(event.lane);
  } else if (kind == events::settled) {
    settled_ = flag_of(event.attrs, "ok").value_or(false);
    busy_.clear();
    if (const auto* busy = attribute(event.attrs, "busy"); busy && busy->is_array())
      for (const auto& name : *busy)
        if (name.is_string()) busy_.push_back(name.get<std::string>());
  } else if (kind == events::leaf_end) {
    const auto cause = text_of(event.attrs, "cause");
    cause_ = cause == "completed" ? Cause::completed : cause == "timeout" ? Cause::timeout : Cause::infra;
    reason_ = text_of(event.attrs, "reason");
    detail_ = text_of(event.attrs, "detail");
    dropped_ = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(event.attrs, "dropped").value_or(0)));
  }
}

Reason Ending::infra_reason() const {
  Reason reason = Reason::runner_failed;
  if (scenarios::parse(reason_, reason) && scenarios::verdict_of(reason) == scenarios::Verdict::infra) return reason;
  return Reason::runner_failed;
}

std::optional<Reason> Ending::absence_unknown() const {
  if (cause_ == Cause::missing || cause_ == Cause::infra) return infra_reason();
  if (dropped_ > 0) return Reason::events_dropped;
  if (cause_ == Cause::timeout) return Reason::timed_out;
  if (!settled_.value_or(false)) return Reason::not_settled;
  return std::nullopt;
}

std::string Ending::why_unknown() const {
  switch (cause_) {
    case Cause::missing: return "the trace has no end: the leaf's process died or its events were lost";
    case Cause::infra: return detail_.empty() ? "the leaf could not be carried to its end" : detail_;
    case Cause::timeout: return "the leaf's deadline passed" + (detail_.empty() ? std::string() : " (" + detail_ + ")");
    case Cause::completed: break;
  }
  if (dropped_ > 0) return std::to_string(dropped_) + " events of this leaf were dropped";
  if (!settled_) return "the workload has no settle step after which it could be known";
  if (!*settled_)
    return "the leaf did not settle" + (busy_.empty() ? std::string() : "; still busy: " + base::join_names(busy_));
  return {};
}

std::chrono::nanoseconds Ending::deadline(std::chrono::nanoseconds since, std::chrono::nanoseconds within) const {
  const auto base = std::max(since, last_ready_);
  return within > std::chrono::nanoseconds::max() - base ? std::chrono::nanoseconds::max() : base + within;
}

bool Ending::observed_past(std::chrono::nanoseconds deadline) const {
  return cause_ == Cause::completed && dropped_ == 0 && down_.empty() && last_ > deadline;
}

}  // namespace leafcutter::coordinator
