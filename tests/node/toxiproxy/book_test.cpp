// The book of proxies as values: what each request tells the engine, and what is remembered when the engine refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/toxiproxy/book.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string told(const Operation& operation) {
  if (const auto* add = std::get_if<AddLink>(&operation))
    return "add " + add->name + " " + add->listen + (add->enabled ? "" : " disabled") +
           " faults=" + std::to_string(add->faults.faults.size());
  if (const auto* remove = std::get_if<RemoveLink>(&operation)) return "remove " + remove->name;
  if (const auto* enabled = std::get_if<SetEnabled>(&operation))
    return (enabled->enabled ? "enable " : "disable ") + enabled->name;
  std::string text = "faults";
  for (const auto& [name, set] : std::get<ReplaceFaults>(operation).sets)
    text += " " + name + "=" + std::to_string(set.faults.size());
  return text;
}

/// An engine that writes down what it is told, and refuses what it was asked to refuse.
struct PaperEngine {
  std::vector<std::string> heard;
  std::string refuses;
  Perform perform() {
    return [this](const Operation& operation) -> base::Expected<std::string> {
      heard.push_back(told(operation));
      if (!refuses.empty() && heard.back().rfind(refuses, 0) == 0)
        return base::Error{base::ErrorCode::io, "refused", {}};
      const auto* add = std::get_if<AddLink>(&operation);
      if (add == nullptr) return std::string();
      const auto end = add->listen.rfind(":0");
      return end == std::string::npos ? add->listen : add->listen.substr(0, end) + ":4000";
    };
  }
  std::vector<std::string> take() { return std::exchange(heard, {}); }
};

struct Desk {
  Book book;
  PaperEngine engine;
  Notes notes;

  Outcome carry_out(const base::Expected<Change>& change) {
    EXPECT_TRUE(change) << change.error().message;
    return book.carry_out(*change, engine.perform());
  }
  Outcome create(const std::string& json) { return carry_out(book.create(*read_proxy(json, notes), notes)); }
  Outcome update(const std::string& name, const std::string& json) {
    return carry_out(book.update(*book.find(name), *read_proxy(json, notes)));
  }
  Outcome populate(const std::string& json) {
    return carry_out(book.populate(
        *read_proxies(json, notes), [](const std::string&) { return 10U; }, notes));
  }
  void toxic(const std::string& name, const std::string& json) {
    carry_out(book.add_toxic(*book.find(name), *new_toxic(*read_toxic(json, notes), notes)));
  }
};

const std::string a_json = R"({"name":"a","listen":"127.0.0.1:7","upstream":"u:1"})";

TEST(Book, CreatingAddsOneLinkWithItsToxics) {
  Desk desk;
  desk.create(R"({"name":"a","listen":"localhost:7","upstream":"u:1","toxics":[{"type":"latency"},{"type":"noop"}]})");
  EXPECT_THAT(desk.engine.take(), ElementsAre("add a 127.0.0.1:7 faults=1"));
  EXPECT_TRUE(desk.book.find("a")->linked);
}

TEST(Book, WhatIsDisabledTellsTheEngineNothing) {
  Desk desk;
  desk.create(R"({"name":"a","upstream":"u:1","enabled":false})");
  desk.toxic("a", R"({"type":"latency"})");
  EXPECT_THAT(desk.engine.take(), IsEmpty());
  desk.update("a", R"({"enabled":true})");
  EXPECT_THAT(desk.engine.take(), ElementsAre("add a 127.0.0.1:0 faults=1"));
  desk.update("a", R"({"enabled":false})");
  desk.update("a", R"({"enabled":true})");
  EXPECT_THAT(desk.engine.take(), ElementsAre("disable a", "enable a"));
  desk.update("a", R"({"enabled":true,"upstream":"u:1"})");
  EXPECT_THAT(desk.engine.take(), IsEmpty());
}

TEST(Book, ARefusedCreateIsForgotten) {
  Desk desk;
  desk.engine.refuses = "add";
  const auto outcome = desk.create(a_json);
  EXPECT_EQ(outcome.failed->message, "refused");
  EXPECT_EQ(desk.book.find("a"), nullptr);
}

TEST(Book, ARefusedMovePutsBackWhatWasThere) {
  Desk desk;
  desk.create(a_json);
  desk.toxic("a", R"({"type":"latency"})");
  const auto before = *desk.book.find("a");
  desk.engine.take();
  desk.engine.refuses = "add a 127.0.0.1:8";
  EXPECT_TRUE(desk.update("a", R"({"listen":"localhost:8"})").failed);
  EXPECT_THAT(desk.engine.take(), ElementsAre("remove a", "add a 127.0.0.1:8 faults=1", "add a 127.0.0.1:7 faults=1"));
  EXPECT_EQ(*desk.book.find("a"), before);
  // When even that is refused, it is known to be gone.
  desk.engine.refuses = "add";
  EXPECT_TRUE(desk.update("a", R"({"listen":"localhost:8"})").failed);
  EXPECT_FALSE(desk.book.find("a")->enabled);
  EXPECT_FALSE(desk.book.find("a")->linked);
  desk.engine.refuses.clear();
  desk.engine.take();
  desk.update("a", R"({"enabled":true})");
  EXPECT_THAT(desk.engine.take(), ElementsAre("add a 127.0.0.1:7 faults=1"));
}

TEST(Book, AMoveOfWhatIsDisabledOnlyFreesItsPort) {
  Desk desk;
  desk.create(a_json);
  desk.update("a", R"({"enabled":false})");
  desk.engine.take();
  desk.update("a", R"({"listen":"localhost:8"})");
  EXPECT_THAT(desk.engine.take(), ElementsAre("remove a"));
  EXPECT_EQ(desk.book.find("a")->listen, "localhost:8");
  desk.carry_out(desk.book.remove(*desk.book.find("a")));
  EXPECT_THAT(desk.engine.take(), IsEmpty());
}

TEST(Book, ResetHealsAllInOneStepAndThenEnables) {
  Desk desk;
  for (const std::string name : {"a", "b", "c"})
    desk.create(R"({"name":")" + name + R"(","listen":"127.0.0.1:7","upstream":"u:1","toxics":[{"type":"timeout"}]})");
  desk.update("b", R"({"enabled":false})");
  desk.engine.take();
  desk.engine.refuses = "enable b";
  EXPECT_TRUE(desk.carry_out(desk.book.reset()).failed);
  EXPECT_THAT(desk.engine.take(), ElementsAre("faults a=0 b=0 c=0", "enable b"));
  for (const std::string name : {"a", "b", "c"}) EXPECT_THAT(desk.book.find(name)->toxics, IsEmpty());
  EXPECT_FALSE(desk.book.find("b")->enabled);
  Desk empty;
  EXPECT_FALSE(empty.carry_out(empty.book.reset()).failed);
}

TEST(Book, PopulateTellsOnlyWhatDiffers) {
  Desk desk;
  const std::string b = R"({"name":"b","listen":"127.0.0.1:9","upstream":"u:1"})";
  desk.populate("[" + a_json + "," + b + "]");
  EXPECT_THAT(desk.engine.take(), ElementsAre("add a 127.0.0.1:7 faults=0", "add b 127.0.0.1:9 faults=0"));
  const auto outcome = desk.populate("[" + a_json + R"(,{"name":"b","listen":"127.0.0.1:9","upstream":"u:2"}])");
  EXPECT_THAT(desk.engine.take(), ElementsAre("remove b", "add b 127.0.0.1:9 faults=0"));
  EXPECT_THAT(outcome.done, ElementsAre("a", "b"));
}

TEST(Book, PopulateTwiceWithAFreePortKeepsIt) {
  Desk desk;
  const std::string any = R"([{"name":"a","listen":"localhost:0","upstream":"u:1"}])";
  desk.populate(any);
  desk.engine.take();
  desk.populate(any);
  EXPECT_THAT(desk.engine.take(), IsEmpty());
}

TEST(Book, ToxicsCountConnectionsFromWhenTheyWereAdded) {
  Desk desk;
  const std::string only = R"("toxics":[{"type":"reset_peer","only":{"connections":{"last":3}}}])";
  const std::string a = R"([{"name":"a","listen":"127.0.0.1:7","upstream":"u:1",)";
  desk.populate(a + only + "}]");
  const auto numbers = [&] { return faults_of(desk.book.find("a")->toxics).faults.at(0).selector.connections; };
  EXPECT_EQ(numbers(), (proxy::Ordinals{1, 3}));
  desk.populate(a + R"("toxics":[]}])");
  desk.populate(a + only + "}]");
  EXPECT_EQ(numbers(), (proxy::Ordinals{11, 13}));
  desk.engine.take();
  desk.populate(a + only + "}]");
  EXPECT_THAT(desk.engine.take(), IsEmpty()) << "it says what is there";
  // A new link, also one that is put back, counts from 1.
  desk.engine.refuses = "add a 127.0.0.1:8";
  EXPECT_TRUE(desk.update("a", R"({"listen":"localhost:8"})").failed);
  EXPECT_EQ(numbers(), (proxy::Ordinals{1, 3}));
}

TEST(Book, HasBounds) {
  Desk desk;
  std::string many = "[";
  for (std::size_t i = 0; i < most_proxies; ++i)
    many += (i == 0 ? "" : ",") + (R"({"name":")" + std::to_string(i) + R"(","upstream":"u:1","enabled":false})");
  desk.populate(many + "]");
  EXPECT_EQ(desk.book.proxies().size(), most_proxies);
  EXPECT_FALSE(desk.book.create(*read_proxy(a_json, desk.notes), desk.notes));
  EXPECT_FALSE(desk.book.populate(*read_proxies("[" + a_json + "]", desk.notes), {}, desk.notes));
  for (std::size_t i = 0; i < most_toxics_of_proxy; ++i)
    desk.toxic("0", R"({"type":"noop","name":")" + std::to_string(i) + "\"}");
  EXPECT_FALSE(desk.book.add_toxic(*desk.book.find("0"), {"x", "noop"}));
}

TEST(ToxicFaults, AreForOneWayAndDrawnOnceForAConnection) {
  std::size_t effects = 0;
  for (const auto& kind : toxic_kinds())
    for (const auto stream : {Stream::upstream, Stream::downstream}) {
      Toxic toxic{"name", std::string(kind.type), stream, 0.25, {}, {}, 0};
      for (const auto& attribute : kind.attributes) toxic.attributes[std::string(attribute.name)] = attribute.most;
      const auto set = proxy::checked(faults_of({toxic}), proxy::Transport::tcp);
      ASSERT_TRUE(set) << set.error().message;
      for (const auto& fault : set->faults) {
        ++effects;
        EXPECT_EQ(fault.id, "name");
        EXPECT_EQ(fault.selector.probability, 0.25);
        EXPECT_EQ(fault.selector.draw, proxy::Selector::Draw::connection) << kind.type;
        EXPECT_EQ(fault.selector.flow, stream == Stream::upstream ? proxy::Flow::to_upstream : proxy::Flow::to_client);
      }
    }
  EXPECT_EQ(effects, 14U) << "all but noop";
}

TEST(ListenAddress, ReadsAsGoDoes) {
  EXPECT_EQ(listen_address("localhost:1"), "127.0.0.1:1");
  EXPECT_EQ(listen_address(":1"), "[::]:1");
  EXPECT_EQ(listen_address(""), "127.0.0.1:0");
  EXPECT_EQ(listen_address("localhosts:1"), "localhosts:1");
  EXPECT_EQ(listen_address("[::1]:1"), "[::1]:1");
}

}  // namespace
}  // namespace leafcutter::node::toxiproxy
