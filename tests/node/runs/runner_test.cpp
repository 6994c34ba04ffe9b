// Runs carried out on real sockets: phases on open connections, documents that replace each other, records and totals.
#include "node/runs/runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <sstream>

#include "../proxy/loopback.hpp"
#include "node/runs/loader.hpp"

namespace leafcutter::node::runs {
namespace {

using namespace std::chrono_literals;
using proxy::Peer;
using proxy::Upstream;

/// `phases`: the YAML below "phases:", for proxies a and b of TCP to that upstream.
std::string two_proxies(const std::string& upstream, const std::string& phases,
                        const std::string& listen_b = "127.0.0.1:0", const std::string& upstream_b = {}) {
  return "schema_version: 2\nseed: 5\nproxies:\n  - { name: a, protocol: tcp, listen: \"127.0.0.1:0\", upstream: \"" +
         upstream + "\" }\n  - { name: b, protocol: tcp, listen: \"" + listen_b + "\", upstream: \"" +
         (upstream_b.empty() ? upstream : upstream_b) + "\" }\nphases:\n" + phases;
}

runs::Run load_run(const std::string& text) {
  auto result = load_run_text(text, "run.yaml");
  for (const auto& error : result.errors) ADD_FAILURE() << error.text();
  return result.run.value_or(runs::Run{});
}

/// A runner with everything its hook heard, as records.
class Stage {
 public:
  explicit Stage(const std::string& text, std::shared_ptr<const proxy::Decisions> decisions = {},
                 std::optional<std::uint64_t> seed = {}) {
    RunnerOptions options;
    options.seed = seed;
    options.start = start;
    options.decisions = std::move(decisions);
    options.hook = [this](const proxy::Event& event) {
      const std::lock_guard lock(mutex_);
      lines_ += event_record(event, start);
    };
    auto run = load_run(text);
    header_ = run;
    auto made = Runner::start(std::move(run), std::move(options));
    if (made)
      runner = std::move(*made);
    else
      ADD_FAILURE() << made.error().text();
  }

  std::string address(const std::string& name) const {
    for (const auto& one : runner->endpoints())
      if (one.proxy == name) return one.address;
    return {};
  }
  std::string journal() {
    runner->engine().flush_events();
    const std::lock_guard lock(mutex_);
    return run_started_record(header_, {"run.yaml", runner->seed(), runner->endpoints()}) + lines_;
  }
  std::vector<protocols::Value> records(const std::string& type) {
    std::istringstream lines(journal());
    std::vector<protocols::Value> found;
    for (std::string line; std::getline(lines, line);)
      if (auto record = protocols::Value::parse(line); record["type"] == type) found.push_back(std::move(record));
    return found;
  }

  const Time start = std::chrono::steady_clock::now();

 private:
  runs::Run header_;
  std::mutex mutex_;
  std::string lines_;

 public:
  std::unique_ptr<Runner> runner;  ///< ends before what its hook writes to
};

void expect_echo(Peer& peer, const std::string& bytes) {
  peer.send(bytes);
  EXPECT_EQ(peer.receive(bytes.size()), bytes);
}

TEST(Runner, APhaseReplacesTheFaultsOfAllProxiesOnOpenConnections) {
  const Upstream upstream(proxy::echo);
  Stage stage(two_proxies(upstream.address(),
                          "  - { name: healthy, duration: 10s }\n"
                          "  - { name: dark, duration: 10s, proxies: [ { proxy: a, faults: [ { type: blackhole } ] }, "
                          "{ proxy: b, faults: [ { type: blackhole } ] } ] }\n"
                          "  - { name: after }\n"));
  auto& runner = *stage.runner;
  auto a = Peer::dial(stage.address("a")), b = Peer::dial(stage.address("b"));
  expect_echo(a, "1");
  expect_echo(b, "1");
  EXPECT_FALSE(*runner.advance(stage.start + 9s));
  EXPECT_TRUE(*runner.advance(stage.start + 11s));
  EXPECT_EQ(runner.deadline(), stage.start + 20s);  // counted from the start, however late we are
  a.send("2");
  b.send("2");
  EXPECT_TRUE(a.quiet_for(100ms));
  EXPECT_TRUE(b.quiet_for(50ms));
  EXPECT_TRUE(*runner.advance(stage.start + 20s));
  EXPECT_EQ(a.receive(1), "2");
  EXPECT_EQ(b.receive(1), "2");
  EXPECT_EQ(runner.deadline(), std::nullopt);
  EXPECT_FALSE(runner.point().finished);
  const auto struck = stage.records("struck");
  ASSERT_EQ(struck.size(), 2U);
  for (const auto& record : struck) EXPECT_EQ(record["phase"], "dark");
}

TEST(Runner, TheFirstPhaseIsInForceBeforeTheFirstConnection) {
  const Upstream upstream(proxy::echo);
  Stage stage(
      two_proxies(upstream.address(), "  - { name: p, proxies: [ { proxy: a, faults: [ { type: refuse } ] } ] }\n"));
  Peer peer;
  EXPECT_EQ(Peer::try_dial(stage.address("a"), peer), ECONNREFUSED);
  EXPECT_EQ(Peer::try_dial(stage.address("b"), peer), 0);
}

/// What waits for events is put in force as the program's own loop does it.
void advance_at_the_event(Runner& runner, Time now) {
  pollfd item{runner.events(), POLLIN, 0};
  ASSERT_EQ(::poll(&item, 1, 20'000), 1) << "nothing was heard";
  EXPECT_FALSE(*runner.advance(now));
}

const char* const waits_for_a =
    "  - { name: p, duration: 10s, proxies: [ { proxy: b, faults: [ { type: blackhole, id: late, "
    "after: { record: accepted, proxy: a, count: 2 } } ] } ] }\n"
    "  - { name: q, proxies: [ { proxy: b, faults: [ { type: blackhole, id: late, "
    "after: { record: connection-closed, proxy: a } } ] } ] }\n";

TEST(Runner, AFaultBeginsAtTheEventItWaitsForOnOpenConnections) {
  const Upstream upstream(proxy::echo);
  Stage stage(two_proxies(upstream.address(), waits_for_a));
  auto& runner = *stage.runner;
  auto b = Peer::dial(stage.address("b"));
  expect_echo(b, "1");
  auto first = Peer::dial(stage.address("a"));
  expect_echo(first, "1");
  runner.engine().flush_events();
  EXPECT_FALSE(*runner.advance(stage.start + 1s));
  EXPECT_TRUE(runner.begun().empty()) << "one is not two";
  expect_echo(b, "2");
  auto second = Peer::dial(stage.address("a"));
  advance_at_the_event(runner, stage.start + 2s);
  ASSERT_EQ(runner.begun().size(), 1U);
  EXPECT_EQ(runner.begun()[0].fault, "late");
  b.send("3");
  EXPECT_TRUE(b.quiet_for(100ms));
  expect_echo(first, "2");  // its proxy has no fault
  EXPECT_FALSE(*runner.advance(stage.start + 3s));
  EXPECT_TRUE(runner.begun().empty()) << "it is said once";
  // In the next phase it waits for something else.
  EXPECT_TRUE(*runner.advance(stage.start + 11s));
  EXPECT_EQ(b.receive(1), "3");
  expect_echo(b, "4");
  second.close();
  advance_at_the_event(runner, stage.start + 12s);
  b.send("5");
  EXPECT_TRUE(b.quiet_for(100ms));
  const auto struck = stage.records("struck");
  ASSERT_EQ(struck.size(), 2U);
  EXPECT_EQ(struck[0]["activation"], 1);
  EXPECT_EQ(struck[1]["activation"], 2);
}

TEST(Runner, AnEditWaitsForEventsOfItsOwnAndABadOneChangesNothing) {
  const Upstream upstream(proxy::echo);
  const auto waits = [&](const std::string& listen, const std::string& record) {
    return two_proxies(upstream.address(),
                       "  - { name: p, proxies: [ { proxy: a, faults: [ { type: blackhole, "
                       "after: { record: " +
                           record + ", proxy: b } } ] } ] }\n",
                       listen);
  };
  Stage stage(waits("127.0.0.1:0", "accepted"));
  auto& runner = *stage.runner;
  auto a = Peer::dial(stage.address("a"));
  expect_echo(a, "1");
  // Its port is taken: what the old one waits for is still waited for.
  ASSERT_FALSE(runner.replace(load_run(waits(upstream.address(), "connected")), stage.start).ok());
  auto b = Peer::dial(stage.address("b"));
  advance_at_the_event(runner, stage.start);
  a.send("2");
  EXPECT_TRUE(a.quiet_for(100ms));
  ASSERT_TRUE(runner.replace(load_run(waits("127.0.0.1:0", "connection-closed")), stage.start).ok());
  EXPECT_EQ(a.receive(1), "2");
  expect_echo(a, "3");
  b.close();
  advance_at_the_event(runner, stage.start);
  a.send("4");
  EXPECT_TRUE(a.quiet_for(100ms));
}

TEST(Runner, APortInUseIsSaidAtItsPlaceInTheDocument) {
  const Upstream upstream(proxy::echo);
  auto run = load_run(two_proxies(upstream.address(), "  - { name: p }\n", upstream.address()));
  const auto runner = Runner::start(std::move(run), {});
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.error().code, base::ErrorCode::bad_input);
  EXPECT_EQ(runner.error().where.line, 5);
  EXPECT_EQ(runner.error().where.column, 39);
  EXPECT_THAT(runner.error().text(),
              testing::StartsWith("run.yaml:5:39: proxy \"b\": listen on " + upstream.address()));
  EXPECT_THAT(runner.error().text(), testing::HasSubstr("port 0 takes a free one"));
}

TEST(Runner, AnUpstreamThatCannotBeReachedTroublesItsOwnProxyAlone) {
  const Upstream upstream(proxy::echo);
  const auto dead = "127.0.0.1:" + std::to_string(proxy::dead_port());
  Stage stage(two_proxies(upstream.address(), "  - { name: p }\n", "127.0.0.1:0", dead));
  auto b = Peer::dial(stage.address("b"));
  EXPECT_EQ(b.ending(), "end");
  auto a = Peer::dial(stage.address("a"));
  expect_echo(a, "fine");
  const auto failed = stage.records("connect-failed");
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0]["link"], "b");
  EXPECT_EQ(failed[0]["cause"], "refused");
}

TEST(Runner, ANewDocumentKeepsConnectionsOfProxiesThatStay) {
  const Upstream upstream(proxy::echo), other(proxy::echo);
  Stage stage(two_proxies(upstream.address(), "  - { name: p }\n"));
  auto& runner = *stage.runner;
  auto a = Peer::dial(stage.address("a")), b = Peer::dial(stage.address("b"));
  expect_echo(a, "1");
  expect_echo(b, "1");
  const auto address = stage.address("a");
  const auto later = stage.start + 5s;
  const auto changed = runner.replace(
      load_run(
          two_proxies(upstream.address(),
                      "  - { name: q, duration: 1s, proxies: [ { proxy: a, faults: [ { type: latency, distribution: { "
                      "type: fixed, delay_ms: 30 } } ] } ] }\n",
                      "127.0.0.1:0", other.address())),
      later);
  ASSERT_TRUE(changed.ok()) << changed.error().text();
  EXPECT_EQ(*changed, 2U);  // b closed, and opened to the other upstream
  EXPECT_EQ(stage.address("a"), address);
  const auto begin = proxy::Clock::now();
  expect_echo(a, "2");
  EXPECT_GE(proxy::Clock::now() - begin, 60ms);
  EXPECT_EQ(b.ending(), "end");
  auto again = Peer::dial(stage.address("b"));
  expect_echo(again, "3");
  EXPECT_EQ(other.accepted(), 1);
  // Its phases begin when it came.
  EXPECT_EQ(runner.deadline(), later + 1s);
  EXPECT_TRUE(runner.totals().contains("b"));
  EXPECT_EQ(runner.totals().at("b").accepted, 2U);  // the closed one's included
}

TEST(Runner, ADocumentThatCannotBeCarriedOutChangesNothing) {
  const Upstream upstream(proxy::echo);
  Stage stage(two_proxies(upstream.address(),
                          "  - { name: p, proxies: [ { proxy: a, faults: [ { type: limit, bytes: 3 } ] } ] }\n"));
  auto& runner = *stage.runner;
  auto a = Peer::dial(stage.address("a"));
  expect_echo(a, "1");
  auto b = Peer::dial(stage.address("b"));
  expect_echo(b, "1");
  const auto changed = runner.replace(
      load_run(two_proxies(upstream.address(), "  - { name: q }\n", upstream.address())), stage.start + 1s);
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(changed.error().text(), testing::StartsWith("run.yaml:5:39: listen on"));
  expect_echo(b, "2");  // the proxy that was to be another has not been closed
  EXPECT_EQ(runner.run().phases[0].name, "p");
  expect_echo(a, "2");
  a.send("34");
  EXPECT_EQ(a.receive(2), "3");  // the old fault is still in force
  EXPECT_EQ(runner.endpoints().size(), 2U);
  auto peer = Peer::dial(stage.address("b"));
  expect_echo(peer, "x");
}

TEST(Runner, WhatWasClosedForADocumentThatFailsIsOpenedAgain) {
  const Upstream upstream(proxy::echo);
  Stage stage(two_proxies(upstream.address(), "  - { name: p }\n"));
  auto& runner = *stage.runner;
  auto a = Peer::dial(stage.address("a"));
  expect_echo(a, "1");
  // Two new proxies want one port: that shows only when the second one is opened.
  auto next =
      load_run(two_proxies(upstream.address(), "  - { name: q }\n", "127.0.0.1:" + std::to_string(proxy::dead_port())));
  next.proxies[1].name = "c";
  next.proxies.push_back(next.proxies[1]);
  next.proxies[2].name = "d";
  next.phases[0].sets["c"] = next.phases[0].sets["d"] = next.phases[0].sets["b"];
  next.phases[0].sets.erase("b");
  const auto changed = runner.replace(std::move(next), stage.start + 1s);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().message.find("cannot all be opened again"), std::string::npos) << changed.error().message;
  expect_echo(a, "2");
  ASSERT_EQ(runner.endpoints().size(), 2U);
  auto b = Peer::dial(stage.address("b"));
  expect_echo(b, "x");
  EXPECT_EQ(runner.run().phases[0].name, "p");
}

/// Sums of records of one link and type.
std::uint64_t sum_of(const std::vector<protocols::Value>& records, const std::string& link, const std::string& field) {
  std::uint64_t sum = 0;
  for (const auto& record : records)
    if (record["link"] == link) sum += field.empty() ? 1 : record.value(field, std::uint64_t{0});
  return sum;
}

TEST(Runner, TotalsAreTheSumsOfTheRecords) {
  const Upstream upstream(proxy::echo);
  Stage stage(
      two_proxies(upstream.address(),
                  "  - { name: p, proxies: [ { proxy: a, faults: [ { type: jitter, min_delay_ms: 0, max_delay_ms: 1, "
                  "probability: 0.5 }, { type: cut, after_bytes: 30, select: { probability: 0.5 } } ] } ] }\n"));
  for (int i = 0; i < 30; ++i) {
    auto peer = Peer::dial(stage.address(i % 3 == 0 ? "b" : "a"));
    for (int k = 0; k < 10; ++k) {
      if (!peer.try_send("12345")) break;
      if (peer.receive(5).size() < 5) break;
    }
    if (i % 2 == 0) peer.reset();
  }
  auto open = Peer::dial(stage.address("a"));
  expect_echo(open, "still open");
  stage.runner->end();
  const auto totals = stage.runner->totals();
  EXPECT_EQ(stage.runner->dropped_records(), 0U);
  for (const auto& [name, link] : totals) {
    EXPECT_EQ(link.active, 0U);
    EXPECT_EQ(link.accepted, sum_of(stage.records("accepted"), name, ""));
    EXPECT_EQ(link.closed, sum_of(stage.records("connection-closed"), name, ""));
    EXPECT_EQ(link.accepted, link.closed);
    EXPECT_EQ(link.strikes, sum_of(stage.records("struck"), name, ""));
    EXPECT_EQ(link.bytes_to_upstream, sum_of(stage.records("connection-closed"), name, "bytes_to_upstream"));
    EXPECT_EQ(link.bytes_to_client, sum_of(stage.records("connection-closed"), name, "bytes_to_client"));
    std::uint64_t strikes = 0, passed = 0;
    for (const auto& [id, fault] : link.faults) strikes += fault.strikes, passed += fault.passed_over;
    EXPECT_EQ(strikes, link.strikes);
    EXPECT_EQ(passed, sum_of(stage.records("passed-over"), name, ""));
  }
  EXPECT_GT(totals.at("a").strikes, 0U);
  EXPECT_EQ(totals.at("b").strikes, 0U);
}

}  // namespace
}  // namespace leafcutter::node::runs
