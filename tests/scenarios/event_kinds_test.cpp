#include "scenarios/event_kinds.hpp"

#include <gtest/gtest.h>

#include <set>

namespace leafcutter::scenarios {
namespace {

TEST(EventKinds, EveryNameOfTheHeaderIsDefinedOnce) {
  std::set<std::string> names;
  for (const auto& kind : event_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_FALSE(kind.about.empty() || kind.attributes.empty()) << kind.name;
    EXPECT_TRUE(kind.lane == "leaf" || kind.lane == "service" || kind.lane == "link" || kind.lane == "workload")
        << kind.name;
  }
  const std::set<std::string> expected = {
      events::leaf_begin,   events::leaf_end, events::sites, events::fault_armed, events::fault_fired,
      events::fault_undone, events::start,    events::ready, events::exit,        events::log,
      events::syscall,      events::connect,  events::close, events::request,     events::reply,
      events::step,         events::settled,  events::check, events::unresolved,  events::egress_refused};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(event_kind("reqest"), nullptr);
}

TEST(EventKinds, KnowTheirAttributesAndWhatMayLieBelow) {
  const auto has = [](const char* kind, const std::vector<std::string>& path) {
    return has_attribute(*event_kind(kind), path);
  };
  EXPECT_TRUE(has("request", {"path"}));
  EXPECT_TRUE(has("request", {"json", "id"}));
  EXPECT_TRUE(has("request", {"reply"}));
  EXPECT_TRUE(has("request", {"reply", "status"}));
  EXPECT_TRUE(has("request", {"reply", "json", "items", "0"}));
  EXPECT_FALSE(has("request", {"reply", "stats"}));
  EXPECT_FALSE(has("request", {"path", "x"}));
  EXPECT_FALSE(has("request", {"status"}));
  EXPECT_FALSE(has("request", {}));
  EXPECT_TRUE(has("request", {"lane"}));
  EXPECT_FALSE(has("request", {"service"}));
  EXPECT_TRUE(has("exit", {"service"}));
}

}  // namespace
}  // namespace leafcutter::scenarios
