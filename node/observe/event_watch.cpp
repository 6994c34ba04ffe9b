#include "node/observe/event_watch.hpp"

#include <utility>

#include "scenarios/event_pattern.hpp"

namespace leafcutter::node {

base::Expected<EventWatch> EventWatch::create(const scenarios::Plan& plan) {
  EventWatch watch;
  const auto add = [&](std::size_t fault, bool releases, const std::string& text) -> base::Status {
    const auto pattern = scenarios::parse_event_pattern(text);
    if (!pattern) return pattern.error();
    auto compiled = scenarios::CompiledPattern::compile(*pattern);
    if (!compiled) return compiled.error();
    watch.watches_.emplace(pattern->event, Watch{fault, releases, std::move(*compiled)});
    return base::ok();
  };
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    const auto& fault = plan.faults[i];
    if (fault.aim && !fault.aim->after.empty())
      if (auto added = add(i, false, fault.aim->after); !added) return added.error();
    const auto until = fault.params.find("until");
    if (until != fault.params.end() && until->is_string())
      if (auto added = add(i, true, until->get<std::string>()); !added) return added.error();
  }
  return watch;
}

void EventWatch::see(const protocols::Event& event, SiteBook& sites) {
  const auto [begin, end] = watches_.equal_range(event.kind);
  for (auto entry = begin; entry != end;) {
    auto& watch = entry->second;
    const auto matches = watch.pattern.matches(event);
    const auto seen = matches && *matches;
    if (seen && watch.releases) sites.release(watch.fault);
    if (seen && !watch.releases) {
      sites.seen(watch.fault);
      entry = watches_.erase(entry);
    } else {
      ++entry;
    }
  }
}

}  // namespace leafcutter::node
