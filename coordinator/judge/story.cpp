#include "coordinator/judge/story.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>

#include "coordinator/judge/attributes.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::coordinator {

using protocols::Event;
using protocols::Value;
namespace events = scenarios::events;

namespace {

bool is(const Event& event, std::initializer_list<const char*> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const char* kind) { return event.kind == kind; });
}

/// Messages so close to evidence or a fault are shown for context, cause or not.
constexpr std::size_t nearby = 6;

/// When something first happened that was not start-up.
std::size_t first_action(const std::vector<Event>& all) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is(all[i], {events::request, events::reply, events::step, events::fault_fired})) return i;
  return all.size();
}

class Ranking {
 public:
  Ranking(const std::vector<Event>& all, const Violation& violation)
      : all_(all), violation_(violation), action_(first_action(all)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (evidence(all[i])) evidence_.push_back(i);
      if (all[i].kind == events::fault_fired) anchors_.push_back(i);
    }
    anchors_.insert(anchors_.end(), evidence_.begin(), evidence_.end());
  }

  /// 0 matters most; none: it does not matter.
  std::optional<int> rank(std::size_t index) const {
    const auto& event = all_[index];
    if (evidence(event) || event.kind == events::fault_fired) return 0;
    if (is(event, {events::leaf_begin, events::sites, events::fault_armed, events::log, events::fault_undone}))
      return std::nullopt;
    if (event.kind == events::check && text_of(event.attrs, "property") == violation_.property) return 0;
    if (event.kind == events::step && flag_of(event.attrs, "expected") == false) return 1;
    if (is(event, {events::exit, events::start, events::ready}))
      return index < action_ ? std::nullopt : std::optional(1);
    if (!violation_.key.empty() && mentions(event.attrs, violation_.key)) return 1;
    if (event.kind == events::settled || event.kind == events::leaf_end) return 2;
    const bool causal =
        std::any_of(evidence_.begin(), evidence_.end(), [&](auto i) { return in_cone(event, all_[i]); });
    if (!is(event, {events::request, events::reply})) return std::nullopt;
    if (causal) return 3;
    return distance(index) <= nearby ? std::optional(4) : std::nullopt;
  }

  std::size_t distance(std::size_t index) const {
    std::size_t least = all_.size();
    for (const auto anchor : anchors_) least = std::min(least, anchor > index ? anchor - index : index - anchor);
    return least;
  }

 private:
  bool evidence(const Event& event) const {
    const EventRef own{event.lane, event.seq};
    return std::find(violation_.events.begin(), violation_.events.end(), own) != violation_.events.end();
  }

  const std::vector<Event>& all_;
  const Violation& violation_;
  std::size_t action_;
  std::vector<std::size_t> evidence_, anchors_;
};

/// What an event says, without what differs between two runs of the same plan.
std::optional<std::string> essence(const Event& event, const std::string& key) {
  static constexpr std::array attributes = {"method", "path", "status",   "signal",   "outcome", "accepted",
                                            "label",  "ok",   "injected", "property", "exit",    "attempt"};
  if (event.lane == "leaf" || is(event, {events::fault_armed, events::fault_fired, events::fault_undone, events::log,
                                         events::syscall, events::close, events::connect, events::settled}))
    return std::nullopt;
  auto text = event.kind;
  for (const auto* name : attributes)
    if (const auto* value = attribute(event.attrs, name); value && !value->is_structured())
      text += "|" + value->dump(-1, ' ', false, Value::error_handler_t::replace);
  if (const auto* reply = attribute(event.attrs, "reply"))
    for (const auto* name : {"status", "delivered"})
      if (const auto* value = attribute(*reply, name))
        text += "|" + value->dump(-1, ' ', false, Value::error_handler_t::replace);
  if (!key.empty() && mentions(event.attrs, key)) text += "|key";
  return text;
}

struct Lane {
  std::vector<std::size_t> index;
  std::vector<std::string> essence;
};

/// What is compared: nothing of an event that does not count.
using Essence = std::function<std::optional<std::string>(const Event&)>;

std::optional<std::string> line_written(const Event& event) {
  if (event.kind != events::log) return std::nullopt;
  return text_of(event.attrs, "line");
}

std::map<std::string, Lane> lanes_of(const std::vector<Event>& all, const Essence& essence_of) {
  std::map<std::string, Lane> lanes;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (auto text = essence_of(all[i])) {
      auto& lane = lanes[all[i].lane];
      lane.index.push_back(i);
      lane.essence.push_back(std::move(*text));
    }
  return lanes;
}

std::vector<Divergence> parting_ways(const std::vector<Event>& failing, const std::vector<Event>& passing,
                                     const Essence& essence_of) {
  auto here = lanes_of(failing, essence_of), there = lanes_of(passing, essence_of);
  for (const auto& [name, lane] : there) here[name];
  std::chrono::nanoseconds struck = std::chrono::nanoseconds::max();
  for (const auto& event : failing)
    if (event.kind == events::fault_fired) struck = std::min(struck, event.at);

  std::vector<std::tuple<bool, std::chrono::nanoseconds, Divergence>> found;
  for (const auto& [name, lane] : here) {
    const auto& other = there[name];
    std::size_t i = 0;
    while (i < lane.essence.size() && i < other.essence.size() && lane.essence[i] == other.essence[i]) ++i;
    if (i == lane.essence.size() && i == other.essence.size()) continue;
    Divergence divergence{name, {}, {}};
    auto at = std::chrono::nanoseconds::max();
    if (i < other.index.size()) at = passing[*(divergence.passing = other.index[i])].at;
    if (i < lane.index.size()) at = failing[*(divergence.failing = lane.index[i])].at;
    found.emplace_back(struck != std::chrono::nanoseconds::max() && at < struck, at, std::move(divergence));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a).lane) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b).lane);
  });
  // Noise from before the fault is worth telling only where there is nothing else.
  const bool any_after = !found.empty() && !std::get<0>(found.front());
  std::vector<Divergence> result;
  for (auto& [before, at, divergence] : found)
    if (!before || !any_after) result.push_back(std::move(divergence));
  return result;
}

}  // namespace

bool in_cone(const Event& event, const Event& later) {
  if (event.lane == later.lane) return event.seq <= later.seq;
  const auto seen = later.clock.find(event.lane);
  return seen != later.clock.end() && event.seq <= seen->second;
}

bool mentions(const Value& attrs, const std::string& key) {
  if (attrs.is_structured())
    return std::any_of(attrs.begin(), attrs.end(), [&](const Value& value) { return mentions(value, key); });
  if (attrs.is_string()) return attrs.get_ref<const std::string&>() == key;
  return attrs.is_number_integer() && attrs.dump() == key;
}

std::vector<const scenarios::Fault*> in_order_of_strikes(const scenarios::Plan& plan, const std::vector<Event>& all) {
  std::vector<const scenarios::Fault*> order;
  const auto add = [&](const scenarios::Fault& fault) {
    if (std::find(order.begin(), order.end(), &fault) == order.end()) order.push_back(&fault);
  };
  for (const auto& event : all)
    if (const auto index = number_of(event.attrs, "fault"); event.kind == events::fault_fired && index && *index >= 0 &&
                                                            static_cast<std::size_t>(*index) < plan.faults.size())
      add(plan.faults[static_cast<std::size_t>(*index)]);
  for (const auto& fault : plan.faults) add(fault);
  return order;
}

std::vector<std::size_t> relevant(const std::vector<Event>& all, const Violation& violation, std::size_t limit) {
  const Ranking ranking(all, violation);
  std::vector<std::tuple<int, std::size_t, std::size_t>> ranked;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const auto rank = ranking.rank(i)) ranked.emplace_back(*rank, ranking.distance(i), i);
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > limit) ranked.resize(limit);
  std::vector<std::size_t> chosen;
  for (const auto& entry : ranked) chosen.push_back(std::get<2>(entry));
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<Divergence> divergences(const std::vector<Event>& failing, const std::vector<Event>& passing,
                                    const std::string& key) {
  auto found = parting_ways(failing, passing, [&](const Event& event) { return essence(event, key); });
  // Two runs of the same plan write different lines often enough (times, process ids): they speak when nothing else
  // does.
  return found.empty() ? parting_ways(failing, passing, line_written) : found;
}

}  // namespace leafcutter::coordinator
