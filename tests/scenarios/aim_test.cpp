#include "scenarios/aim.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "protocols/event.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr const char* data = "/srv/shop";

CallFacts write_of_a_log() {
  CallFacts facts;
  facts.call = "pwrite64";
  facts.object = "file";
  facts.path = "/srv/shop/wal/0001.wal";
  facts.size = 4096;
  facts.offset = 8192;
  return facts;
}

CallFacts open_to_create() {
  CallFacts facts;
  facts.call = "openat";
  facts.object = "file";
  facts.path = "/srv/shop/new";
  facts.flags = O_WRONLY | O_CREAT | O_TRUNC;
  return facts;
}

CallFacts send_to_the_broker() {
  CallFacts facts;
  facts.call = "sendto";
  facts.object = "socket-tcp";
  facts.peer = "broker:http";
  facts.address = "10.77.0.2:7002";
  facts.size = 100;
  return facts;
}

template <class Change>
Aim aimed(Change change) {
  Aim aim;
  change(aim);
  return aim;
}

TEST(Aim, NothingNarrowedSelectsEverything) {
  EXPECT_TRUE(Aim().selects(write_of_a_log(), data));
  EXPECT_TRUE(Aim().selects(CallFacts(), ""));
}

TEST(Aim, CallAndObjectAreMetExactly) {
  EXPECT_TRUE(aimed([](Aim& a) { a.call = "pwrite64"; }).selects(write_of_a_log(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.call = "write"; }).selects(write_of_a_log(), data));
  EXPECT_TRUE(aimed([](Aim& a) { a.object = "file"; }).selects(write_of_a_log(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.object = "pipe"; }).selects(write_of_a_log(), data));
}

TEST(Aim, PathsAreAbsoluteOrBelowTheDataFolder) {
  for (const auto* glob : {"/srv/shop/wal/0001.wal", "/srv/*", "*.wal", "*", "wal/*.wal", "wal/000[12].wal", "*/wal/*"})
    EXPECT_TRUE(aimed([&](Aim& a) { a.path = glob; }).selects(write_of_a_log(), data)) << glob;
  for (const auto* glob : {"/srv/shop", "0001.wal", "shop/wal/0001.wal", "/wal/0001.wal", "wal/000[34].wal", "*.tmp"})
    EXPECT_FALSE(aimed([&](Aim& a) { a.path = glob; }).selects(write_of_a_log(), data)) << glob;
  // Without a data folder nothing is below it; without a path nothing matches one.
  EXPECT_FALSE(aimed([](Aim& a) { a.path = "wal/*"; }).selects(write_of_a_log(), ""));
  EXPECT_FALSE(aimed([](Aim& a) { a.path = "*"; }).selects(send_to_the_broker(), data));
}

TEST(Aim, PeersAreServicesPortsOrAddresses) {
  for (const auto* glob : {"broker", "broker:http", "broker:*", "10.77.0.2:7002", "10.77.0.*:7002", "*:7002", "br*"})
    EXPECT_TRUE(aimed([&](Aim& a) { a.peer = glob; }).selects(send_to_the_broker(), data)) << glob;
  for (const auto* glob : {"brok", "http", "broker:admin", "10.77.0.2", "10.77.0.3:7002", "shop"})
    EXPECT_FALSE(aimed([&](Aim& a) { a.peer = glob; }).selects(send_to_the_broker(), data)) << glob;
  EXPECT_FALSE(aimed([](Aim& a) { a.peer = "*"; }).selects(write_of_a_log(), data));
  auto unnamed = send_to_the_broker();
  unnamed.peer = {};
  unnamed.address = "[fe80::1]:80";
  for (const auto* glob : {"[fe80::1]:80", "[fe80::1]:*", "[fe80::*]:80", "\\[fe80::1\\]:80", "[[]fe80::1]:80", "*:80"})
    EXPECT_TRUE(aimed([&](Aim& a) { a.peer = glob; }).selects(unnamed, data)) << glob;
  for (const auto* glob : {"[fe80::2]:80", "[fe80::1]:81", "[::1]:80", "[fe80::1]", "[fe80::1", "[0-9:]*"})
    EXPECT_FALSE(aimed([&](Aim& a) { a.peer = glob; }).selects(unnamed, data)) << glob;
  unnamed.address = "unix:/run/x";
  EXPECT_TRUE(aimed([](Aim& a) { a.peer = "unix:/run/*"; }).selects(unnamed, data));
  EXPECT_FALSE(aimed([](Aim& a) { a.peer = "broker"; }).selects(unnamed, data));
}

TEST(Aim, RangesHoldTheirEndsAndNeedANumber) {
  const auto size = [](std::optional<std::uint64_t> low, std::optional<std::uint64_t> high) {
    return aimed([&](Aim& a) { a.size = Range{low, high}; });
  };
  for (const auto& aim : {size(4096, 4096), size(1, 4096), size(4096, {}), size({}, 4096), size(4096, 9999)})
    EXPECT_TRUE(aim.selects(write_of_a_log(), data)) << aim.text();
  for (const auto& aim : {size(4097, {}), size({}, 4095), size(0, 1)})
    EXPECT_FALSE(aim.selects(write_of_a_log(), data)) << aim.text();
  EXPECT_FALSE(size(0, {}).selects(open_to_create(), data)) << "a call without a size has none that fits";
  EXPECT_TRUE(aimed([](Aim& a) { a.offset = Range{8192, 8192}; }).selects(write_of_a_log(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.offset = Range{0, 8191}; }).selects(write_of_a_log(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.offset = Range{0, {}}; }).selects(send_to_the_broker(), data));
}

TEST(Aim, FlagsAreAllSetAndKnown) {
  EXPECT_TRUE(aimed([](Aim& a) { a.flags = {"O_CREAT"}; }).selects(open_to_create(), data));
  EXPECT_TRUE(aimed([](Aim& a) { a.flags = {"O_CREAT", "O_TRUNC"}; }).selects(open_to_create(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.flags = {"O_CREAT", "O_EXCL"}; }).selects(open_to_create(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.flags = {"O_SYNC"}; }).selects(open_to_create(), data));
  EXPECT_FALSE(aimed([](Aim& a) { a.flags = {"O_NOTHING"}; }).selects(open_to_create(), data));
  for (const auto& name : flag_names()) EXPECT_NE(flag_bits(name), 0u) << name;
}

TEST(Aim, EverythingMustHold) {
  auto aim = aimed([](Aim& a) {
    a.call = "pwrite64";
    a.object = "file";
    a.path = "*.wal";
    a.size = Range{1, {}};
    a.offset = Range{8192, {}};
  });
  EXPECT_TRUE(aim.selects(write_of_a_log(), data));
  for (auto Aim::*member : {&Aim::call, &Aim::object, &Aim::path, &Aim::peer}) {
    auto other = aim;
    other.*member = "other";
    EXPECT_FALSE(other.selects(write_of_a_log(), data)) << other.text();
  }
}

TEST(Occurrences, IncludeWhatTheyName) {
  using Which = Occurrences::Which;
  struct Case {
    Occurrences occurrences;
    std::vector<bool> first_six;
    bool repeat;
    const char* text;
  };
  const Case cases[] = {{{Which::nth, 3}, {false, false, true, false, false, false}, false, "#3"},
                        {{Which::first, 1}, {true, false, false, false, false, false}, false, "first 1"},
                        {{Which::first, 2}, {true, true, false, false, false, false}, true, "first 2"},
                        {{Which::every, 3}, {false, false, true, false, false, true}, true, "every 3"},
                        {{Which::from, 1}, {true, true, true, true, true, true}, true, ""},
                        {{Which::from, 5}, {false, false, false, false, true, true}, true, "from 5"}};
  for (const auto& entry : cases) {
    for (std::uint64_t i = 0; i < 6; ++i)
      EXPECT_EQ(entry.occurrences.include(i + 1), entry.first_six[i]) << entry.text << ", call " << i + 1;
    EXPECT_EQ(entry.occurrences.repeat(), entry.repeat) << entry.text;
    EXPECT_EQ(entry.occurrences.text(), entry.text);
  }
}

Aim drawing(std::uint32_t per_million, std::uint64_t seed) {
  return aimed([&](Aim& a) {
    a.per_million = per_million;
    a.seed = seed;
  });
}

TEST(Aim, DrawsDependOnSeedAndOrdinalAlone) {
  const auto aim = drawing(250'000, 7);
  std::vector<bool> forwards, backwards;
  for (std::uint64_t i = 1; i <= 200; ++i) forwards.push_back(aim.drawn(i));
  for (std::uint64_t i = 200; i >= 1; --i) backwards.insert(backwards.begin(), aim.drawn(i));
  EXPECT_EQ(forwards, backwards);
  std::vector<bool> other_seed;
  for (std::uint64_t i = 1; i <= 200; ++i) other_seed.push_back(drawing(250'000, 8).drawn(i));
  EXPECT_NE(forwards, other_seed);
}

/// Frozen: a plan of today means the same tomorrow. Computed apart from this code, after the definition of Philox.
TEST(Aim, DrawsAreFrozen) {
  std::string drawn;
  for (std::uint64_t i = 1; i <= 64; ++i) drawn += drawing(250'000, 7).drawn(i) ? '1' : '.';
  EXPECT_EQ(drawn, "1....1.........1....1.........111......1................1......1");
}

TEST(Aim, DrawsAreAsOftenAsTheySay) {
  for (const auto per_million : {1'000u, 250'000u, 900'000u}) {
    int count = 0;
    for (std::uint64_t i = 1; i <= 100'000; ++i) count += drawing(per_million, 42).drawn(i) ? 1 : 0;
    EXPECT_NEAR(count, per_million / 10.0, 500) << per_million;
  }
  for (std::uint64_t i = 1; i <= 100; ++i) {
    EXPECT_TRUE(drawing(1'000'000, 7).drawn(i));
    EXPECT_FALSE(drawing(0, 7).drawn(i));
  }
}

TEST(Aim, TakesTheSameWayThereAndBack) {
  const auto aim = aimed([](Aim& a) {
    a.call = "pwrite64";
    a.object = "file";
    a.path = "a \"b\"";
    a.peer = "broker";
    a.size = Range{1, 100};
    a.offset = Range{{}, 5};
    a.flags = {"O_CREAT", "O_TRUNC"};
    a.occurrences = {Occurrences::Which::every, 3};
    a.after = "reply status=201";
    a.per_million = 250'000;
    a.seed = 18'446'744'073'709'551'615u;
    a.uncounted = true;
  });
  const auto again = aim_from(to_value(aim));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, aim);
  EXPECT_EQ(aim.text(),
            "call=pwrite64 object=file path=\"a \\\"b\\\"\" peer=broker size=1..100 offset=..5 "
            "flags=O_CREAT|O_TRUNC after=\"reply status=201\" probability=0.25 every 3 uncounted");
  EXPECT_EQ(Aim().text(), "");
  const auto empty = aim_from(to_value(Aim()));
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, Aim());
}

TEST(Aim, RefusesWhatIsNone) {
  const Value bad[] = {
      Value::array(),
      {{"size", 3}},
      {{"size", {{"at-least", -1}}}},
      {{"size", {{"above", 1}}}},
      {{"path", 3}},
      {{"flags", "O_CREAT"}},
      {{"flags", {"O_NOTHING"}}},
      {{"occurrences", 3}},
      {{"occurrences", {{"nth", 0}}}},
      {{"occurrences", {{"last", 1}}}},
      {{"occurrences", {{"nth", 1}, {"from", 2}}}},
      {{"occurrences", {{"nth", 4'294'967'296}}}},
      {{"per-million", -1}},
      {{"wish", "x"}},
  };
  for (const auto& value : bad) {
    const auto aim = aim_from(value);
    ASSERT_FALSE(aim) << value;
    EXPECT_EQ(aim.error().code, base::ErrorCode::bad_input) << value;
  }
}

}  // namespace
}  // namespace leafcutter::scenarios
