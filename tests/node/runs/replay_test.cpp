// A replay makes the decisions in a journal again, whatever the seed is now.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "../proxy/loopback.hpp"
#include "node/runs/loader.hpp"
#include "node/runs/recording.hpp"
#include "node/runs/runner.hpp"

namespace leafcutter::node::runs {
namespace {

using namespace std::chrono_literals;
using proxy::Peer;
using proxy::UdpPeer;
using proxy::Upstream;

/// What happened in one execution: the decisions alone, without times.
struct Execution {
  std::string journal;
  std::vector<std::string> decisions;
};

std::string decision_of(const protocols::Value& record) {
  auto kept = record;
  kept.erase("at_ms");
  return kept.dump();
}

/// Runs `text`, lets `drive` make traffic to the proxy "a", and collects what was decided.
Execution execute(const std::string& text, const std::function<void(const std::string& address)>& drive,
                  std::optional<std::uint64_t> seed = {}, std::shared_ptr<const proxy::Decisions> decisions = {}) {
  auto loaded = load_run_text(text, "run.yaml");
  for (const auto& error : loaded.errors) ADD_FAILURE() << error.text();
  std::string lines;  // written by one thread, read when it has ended
  RunnerOptions options;
  options.seed = seed;
  options.decisions = std::move(decisions);
  options.hook = [&, start = options.start](const proxy::Event& event) { lines += event_record(event, start); };
  const auto run = *loaded.run;
  Execution execution;
  {
    const auto runner = Runner::start(run, options);
    EXPECT_TRUE(runner.ok()) << runner.error().text();
    execution.journal = run_started_record(run, {"run.yaml", (*runner)->seed(), (*runner)->endpoints()});
    drive((*runner)->endpoints()[0].address);
    (*runner)->end();
  }
  execution.journal += lines + "{\"type\":\"run-completed\",\"dropped_records\":0}\n";
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);) {
    const auto record = protocols::Value::parse(line);
    if (record["type"] == "struck" || record["type"] == "passed-over")
      execution.decisions.push_back(decision_of(record));
  }
  return execution;
}

Recording recording_of(const Execution& execution) {
  auto recording = read_recording_text(execution.journal, "j.ndjson");
  EXPECT_TRUE(recording.ok()) << recording.error().text();
  EXPECT_TRUE(recording->whole);
  return *recording;
}

std::string one_proxy(const std::string& protocol, const std::string& upstream, const std::string& faults) {
  return "schema_version: 2\nseed: 1\nproxies: [ { name: a, protocol: " + protocol +
         ", listen: \"127.0.0.1:0\", upstream: \"" + upstream +
         "\" } ]\nphases:\n  - name: p\n    proxies:\n      - proxy: a\n"
         "        faults:\n" +
         faults;
}

/// Connections one after the other, each with so many round trips.
std::function<void(const std::string&)> round_trips(int connections, int trips) {
  return [=](const std::string& address) {
    for (int i = 0; i < connections; ++i) {
      auto peer = Peer::dial(address);
      for (int k = 0; k < trips; ++k) {
        if (!peer.try_send("12345678") || peer.receive(8).size() < 8) break;
      }
      peer.finish_sending();
      peer.receive_all();
    }
  };
}

TEST(Replay, ConnectionsAndBytesAreStruckAsRecordedWhateverTheSeed) {
  const Upstream upstream(proxy::echo);
  const auto text = one_proxy(
      "tcp", upstream.address(),
      "          - { type: reset, select: { probability: 0.3 }, flow: to-client, when: first-bytes }\n"
      "          - { type: jitter, min_delay_ms: 0, max_delay_ms: 2, probability: 0.4 }\n"
      "          - { type: latency, distribution: { type: uniform, min_ms: 0, max_ms: 1 }, flow: to-client }\n");
  const auto drive = round_trips(12, 6);
  const auto recorded = execute(text, drive, 1001);
  ASSERT_GT(recorded.decisions.size(), 50U);
  // Another seed decides otherwise: what follows would not be true by itself.
  const auto other = execute(text, drive, 2002);
  ASSERT_NE(other.decisions, recorded.decisions);
  const auto replayed = execute(text, drive, 2002, recording_of(recorded).decisions);
  EXPECT_EQ(replayed.decisions, recorded.decisions);
}

TEST(Replay, BytesAreStruckAtTheirOffsetsHoweverTheyAreReadThisTime) {
  const Upstream upstream(proxy::echo);
  const auto text = one_proxy(
      "tcp", upstream.address(),
      "          - { type: jitter, min_delay_ms: 1, max_delay_ms: 2, probability: 0.5, flow: to-upstream }\n");
  const auto recorded = execute(text, round_trips(1, 16), 7);
  // The same 128 bytes at once.
  const auto at_once = [](const std::string& address) {
    auto peer = Peer::dial(address);
    peer.send(std::string(128, 'x'));
    EXPECT_EQ(peer.receive(128).size(), 128U);
    peer.finish_sending();
    peer.receive_all();
  };
  const auto replayed = execute(text, at_once, 99, recording_of(recorded).decisions);
  const auto places = [](const Execution& execution) {
    std::vector<std::string> all;
    for (const auto& decision : execution.decisions) {
      const auto record = protocols::Value::parse(decision);
      all.push_back(record["offset"].dump() + "+" + record["bytes"].dump() + " " + record["delay_ms"].dump());
    }
    return all;
  };
  ASSERT_GT(places(recorded).size(), 3U);
  ASSERT_LT(places(recorded).size(), 16U);
  EXPECT_EQ(places(replayed), places(recorded));
}

TEST(Replay, DatagramsAreLostAsRecordedWhateverTheSeed) {
  UdpPeer server;
  const auto text =
      one_proxy("udp", server.address(),
                "          - { type: loss, probability: 0.4, flow: to-upstream }\n"
                "          - { type: burst-loss, good_to_bad: 0.2, bad_to_good: 0.5, flow: to-upstream }\n"
                "          - { type: duplicate, select: { probability: 0.3 }, flow: to-upstream }\n");
  std::vector<std::string> arrived;
  const auto drive = [&](const std::string& address) {
    UdpPeer client;
    for (int i = 0; i < 60; ++i) client.send_to(address, std::to_string(i));
    arrived.clear();
    for (auto bytes = server.receive(2s); !bytes.empty(); bytes = server.receive(300ms)) arrived.push_back(bytes);
  };
  const auto recorded = execute(text, drive, 1);
  const auto first = arrived;
  ASSERT_GT(first.size(), 5U);
  execute(text, drive, 2);
  ASSERT_NE(arrived, first);
  const auto replayed = execute(text, drive, 2, recording_of(recorded).decisions);
  EXPECT_EQ(arrived, first);
  EXPECT_EQ(replayed.decisions, recorded.decisions);
}

TEST(Replay, ConnectionsThatWereNotThereAreDrawn) {
  const Upstream upstream(proxy::echo);
  const auto text =
      one_proxy("tcp", upstream.address(), "          - { type: cut, after_bytes: 8, select: { probability: 0.5 } }\n");
  const auto recorded = execute(text, round_trips(6, 3), 11);
  const auto longer = execute(text, round_trips(20, 3), 11);
  const auto replayed = execute(text, round_trips(20, 3), 11, recording_of(recorded).decisions);
  EXPECT_EQ(replayed.decisions, longer.decisions);
}

TEST(Recordings, AreReadBackOrRefusedWithTheirLine) {
  const auto read = [](const std::string& text) { return read_recording_text(text, "j.ndjson"); };
  const std::string start =
      "{\"type\":\"run-started\",\"journal_version\":1,\"seed\":18446744073709551615,\"config_sha256\":\"ab\","
      "\"endpoints\":[{\"proxy\":\"a\",\"listen\":\"tcp://127.0.0.1:1\",\"upstream\":\"b:1\"}]}\n";
  const auto good = read(start + "{\"type\":\"accepted\",\"link\":\"a\",\"connection\":3}\n{\"type\":\"str");
  ASSERT_TRUE(good.ok()) << good.error().text();  // the last line was cut off when the program was killed
  EXPECT_EQ(good->seed, 18'446'744'073'709'551'615U);
  EXPECT_FALSE(good->whole);
  EXPECT_EQ(good->decisions->connections(), 1U);
  EXPECT_EQ(read("").error().text(), "j.ndjson:1:1: the journal is empty; one begins with run-started");
  EXPECT_EQ(read(start.substr(0, 50)).error().text(),
            "j.ndjson:1:1: not one line of the journal is whole; one begins with run-started");
  EXPECT_EQ(read("{\"type\":\"accepted\"}\n").error().text(),
            "j.ndjson:1:1: this is no record of a journal: a journal begins with run-started");
  EXPECT_EQ(read(start + "hello\n").error().text(), "j.ndjson:2:1: this is no record of a journal: it is no JSON");
  EXPECT_EQ(read(start + "{\"type\":7}\n").error().text(),
            "j.ndjson:2:1: this is no record of a journal: a key is missing, or its value is of another kind");
  EXPECT_FALSE(read(start + "{\"type\":\"struck\",\"link\":\"a\"}\n").ok());
  EXPECT_FALSE(read(start + "[]\n").ok());
  auto newer = start;
  newer.replace(newer.find("version\":1"), 10, "version\":9");
  EXPECT_EQ(read(newer).error().text(),
            "j.ndjson:1:1: this is no record of a journal: this program reads journals of version 1");
}

}  // namespace
}  // namespace leafcutter::node::runs
