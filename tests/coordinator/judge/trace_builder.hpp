// Traces and properties for tests, written the way a leaf would record them.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/judge/judge.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::coordinator::testing {

namespace events = scenarios::events;
using protocols::Event;
using protocols::Value;
using scenarios::Matcher;
using scenarios::Pattern;
using scenarios::Property;
using std::chrono::milliseconds;

/// Numbers events within their lanes and keeps clocks the way a recorder does; time moves on by a millisecond an event.
class TraceBuilder {
 public:
  Event& add(const std::string& lane, const std::string& kind, Value attrs, const std::string& caused_by = {}) {
    auto& clock = lanes_[lane];
    if (const auto cause = lanes_.find(caused_by); cause != lanes_.end())
      for (const auto& [other, seen] : cause->second) clock[other] = std::max(clock[other], seen);
    Event event;
    event.lane = lane;
    event.seq = ++clock[lane];
    event.clock = clock;
    event.at = now_;
    event.kind = kind;
    event.attrs = std::move(attrs);
    now_ += milliseconds(1);
    events.push_back(std::move(event));
    return events.back();
  }
  TraceBuilder& later(milliseconds by) {
    now_ += by;
    return *this;
  }

  /// The shop's order, end to end: the workload asks, the shop announces to the broker (or not) and replies.
  TraceBuilder& order(const std::string& id, bool announced = true, int status = 201) {
    if (announced) announce(id);
    add("workload -> shop", events::reply,
        {{"from", "shop"},
         {"to", "workload"},
         {"port", "http"},
         {"method", "POST"},
         {"path", "/orders"},
         {"status", status},
         {"json", {{"id", id}}}},
        "shop");
    add("workload", events::step,
        {{"label", "post shop/orders"}, {"outcome", "replied"}, {"status", status}, {"expected", true}},
        "workload -> shop");
    return *this;
  }
  TraceBuilder& announce(const std::string& id, int status = 200) {
    add("shop -> broker", events::request,
        {{"from", "shop"},
         {"to", "broker"},
         {"port", "http"},
         {"method", "POST"},
         {"path", "/announce"},
         {"json", {{"id", id}}},
         {"outcome", "replied"},
         {"reply", {{"status", status}, {"delivered", true}}}},
        "shop");
    return *this;
  }
  TraceBuilder& settled(bool ok = true, const std::vector<std::string>& busy = {}) {
    add("workload", events::settled, {{"quiet_ms", 300}, {"ok", ok}, {"busy", busy}});
    return *this;
  }
  TraceBuilder& end(const std::string& cause = "completed", int dropped = 0, const std::string& reason = {},
                    const std::string& detail = {}) {
    Value attrs = {{"cause", cause}, {"dropped", dropped}};
    if (!reason.empty()) attrs["reason"] = reason;
    if (!detail.empty()) attrs["detail"] = detail;
    add("leaf", events::leaf_end, std::move(attrs));
    return *this;
  }
  TraceBuilder& fired(int index, const std::string& lane = "shop") {
    add(lane, events::fault_fired, {{"fault", index}, {"kind", "crash-after"}, {"evidence", {{"call", "write"}}}});
    return *this;
  }

  std::vector<Event> events;

 private:
  std::map<std::string, protocols::VectorClock> lanes_;
  std::chrono::nanoseconds now_{0};
};

inline Matcher equals(std::vector<std::string> path, Value value) {
  Matcher matcher;
  matcher.path = std::move(path);
  matcher.value = std::move(value);
  return matcher;
}
inline Matcher status_class(std::vector<std::string> path, int number) {
  Matcher matcher;
  matcher.test = Matcher::Test::status_class;
  matcher.path = std::move(path);
  matcher.status_class = number;
  return matcher;
}

inline Pattern accepted_order() {
  Pattern pattern;
  pattern.event = events::reply;
  pattern.matchers = {equals({"from"}, "shop"), equals({"status"}, 201)};
  pattern.key = {"json", "id"};
  pattern.text = "reply, from: shop, status: 201";
  return pattern;
}
inline Pattern announcement() {
  Pattern pattern;
  pattern.event = events::request;
  pattern.matchers = {equals({"to"}, "broker"), equals({"path"}, "/announce"), status_class({"reply", "status"}, 2)};
  pattern.key = {"json", "id"};
  pattern.text = "request, to: broker, path: /announce";
  return pattern;
}
inline Property property(const std::string& name, Property::Kind kind, Pattern pattern = {}) {
  Property result;
  result.name = name;
  result.kind = kind;
  result.pattern = std::move(pattern);
  return result;
}
inline Property order_is_announced() {
  auto result = property("an accepted order is announced", Property::Kind::eventually, announcement());
  result.for_each = accepted_order();
  result.within = std::chrono::seconds(5);
  return result;
}
inline scenarios::Fault crash_fault() {
  return {"crash-after", {"shop", "write", "data:orders.log"}, 2, Value::object()};
}
inline scenarios::Scenario scenario_with(std::vector<Property> properties) {
  scenarios::Scenario scenario;
  scenario.name = "outbox";
  for (const auto* name : {"broker", "shop"}) {
    scenarios::Service service;
    service.name = name;
    scenario.services.push_back(service);
  }
  scenario.links = {{"workload", "shop", "http", scenarios::Protocol::http, 7001, true},
                    {"shop", "broker", "http", scenarios::Protocol::http, 7002, true}};
  scenario.properties = std::move(properties);
  return scenario;
}

}  // namespace leafcutter::coordinator::testing
