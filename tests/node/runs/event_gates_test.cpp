// Which events let a fault begin that waits for one, and which do not.
#include "node/runs/event_gates.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <set>

namespace leafcutter::node::runs {
namespace {

using proxy::Cause;
using proxy::Event;
using proxy::EventKind;

Event happening(EventKind kind, std::string_view link, std::uint64_t connection = 1) {
  Event event;
  event.kind = kind;
  event.link = link;
  event.phase = "p";
  event.connection = connection;
  return event;
}

proxy::Fault named_fault(const std::string& id) {
  proxy::Fault fault;
  fault.id = id;
  fault.effect = proxy::Blackhole{};
  return fault;
}

/// On proxy "b" the faults "always" and "later"; the latter waits.
Phase waiting_for(Awaited after) {
  Phase phase;
  phase.name = "p";
  phase.sets["a"].faults = {named_fault("slow")};
  phase.sets["b"].faults = {named_fault("always"), named_fault("later")};
  phase.awaited["b"]["later"] = std::move(after);
  return phase;
}

std::size_t in_force(const EventGates& gates, const Phase& phase) { return gates.in_force(phase, "b").faults.size(); }

bool has_news(const EventGates& gates) {
  pollfd item{gates.fd(), POLLIN, 0};
  return ::poll(&item, 1, 0) == 1;
}

TEST(EventGates, OpenAtTheEventOnce) {
  const auto phase = waiting_for({EventKind::accepted, "a"});
  EXPECT_EQ(before_events(phase, "b").faults.size(), 1u);
  EXPECT_EQ(before_events(phase, "a").faults.size(), 1u);
  EventGates gates;
  gates.begin(phase);
  EXPECT_EQ(in_force(gates, phase), 1u);
  gates.heard(happening(EventKind::accepted, "a"));
  EXPECT_TRUE(has_news(gates));
  EXPECT_EQ(in_force(gates, phase), 2u);
  const auto opened = gates.open();
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0].proxy, "b");
  EXPECT_EQ(opened[0].fault, "later");
  EXPECT_EQ(opened[0].after, phase.awaited.at("b").at("later"));
  gates.heard(happening(EventKind::accepted, "a"));
  EXPECT_FALSE(has_news(gates));
  EXPECT_TRUE(gates.open().empty());
}

TEST(EventGates, StayClosedForWhatIsNotMeant) {
  struct Case {
    const char* name;
    Awaited after;
    Event no, yes;
  };
  auto struck = [](std::string_view fault) {
    auto event = happening(EventKind::struck, "a");
    event.fault = fault;
    return event;
  };
  auto ended = [](Cause cause) {
    auto event = happening(EventKind::closed, "a");
    event.cause = cause;
    return event;
  };
  auto of_phase = [](std::string_view phase) {
    auto event = happening(EventKind::accepted, "a");
    event.phase = phase;
    return event;
  };
  const Case cases[] = {
      {"kind", {EventKind::connected, "a"}, happening(EventKind::accepted, "a"), happening(EventKind::connected, "a")},
      {"proxy", {EventKind::accepted, "a"}, happening(EventKind::accepted, "b"), happening(EventKind::accepted, "a")},
      {"fault", {EventKind::struck, "a", "slow"}, struck("other"), struck("slow")},
      {"connection",
       {EventKind::accepted, "a", "", 2},
       happening(EventKind::accepted, "a", 1),
       happening(EventKind::accepted, "a", 2)},
      {"cause",
       {EventKind::closed, "a", "", {}, Cause::client_reset},
       ended(Cause::finished),
       ended(Cause::client_reset)},
      {"phase", {EventKind::accepted, "a"}, of_phase("before"), of_phase("p")},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    const auto phase = waiting_for(one.after);
    EventGates gates;
    gates.begin(phase);
    gates.heard(one.no);
    EXPECT_FALSE(has_news(gates));
    EXPECT_EQ(in_force(gates, phase), 1u);
    gates.heard(one.yes);
    EXPECT_EQ(gates.open().size(), 1u);
  }
}

TEST(EventGates, CountFromTheBeginningOfThePhase) {
  const auto phase = waiting_for({EventKind::accepted, "a", "", {}, {}, 3});
  EventGates gates;
  gates.begin(phase);
  for (int i = 0; i < 2; ++i) gates.heard(happening(EventKind::accepted, "a"));
  EXPECT_TRUE(gates.open().empty());
  auto two = gates.begin(phase);
  gates.heard(happening(EventKind::accepted, "a"));
  EXPECT_TRUE(gates.open().empty()) << "the two of before do not count";
  gates.restore(std::move(two));
  gates.heard(happening(EventKind::accepted, "a"));
  EXPECT_EQ(gates.open().size(), 1u) << "it went on where it was";
}

TEST(EventGates, ThatWereOpenButNotAskedAboutAreNewsWhenTheyAreBack) {
  const auto phase = waiting_for({EventKind::accepted, "a"});
  EventGates gates;
  gates.begin(phase);
  gates.heard(happening(EventKind::accepted, "a"));
  auto before = gates.begin(phase);
  EXPECT_TRUE(gates.open().empty());
  gates.restore(std::move(before));
  EXPECT_TRUE(has_news(gates));
  EXPECT_EQ(gates.open().size(), 1u);
}

TEST(EventGates, NamesAreThoseOfTheJournal) {
  std::set<EventKind> kinds;
  for (const auto& name : awaited_records()) kinds.insert(awaited_kind(name).value());
  EXPECT_EQ(kinds.size(), awaited_records().size());
  EXPECT_EQ(awaited_kind("connection-closed"), EventKind::closed);
  EXPECT_EQ(awaited_kind("closed"), std::nullopt);
  EXPECT_EQ(awaited_cause("client-reset"), Cause::client_reset);
  EXPECT_EQ(awaited_cause("none"), std::nullopt);
}

}  // namespace
}  // namespace leafcutter::node::runs
