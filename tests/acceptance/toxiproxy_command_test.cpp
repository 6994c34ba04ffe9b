// leafcutter proxy --toxiproxy as a command: what it says, what it refuses, how it ends, and who a toxic struck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "support.hpp"

namespace {

using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using acceptance::leafcutter_command;
using acceptance::Outcome;
using acceptance::Program;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

class ToxiproxyCommand : public testing::Test {
 protected:
  /// Starts it on a free port and waits until it has said where; `line` is what it said.
  std::unique_ptr<Program> start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"proxy", "--toxiproxy", "127.0.0.1:0"});
    auto program = std::make_unique<Program>(leafcutter_command(std::move(arguments)), folder_.path());
    if (!program->wait_for_output_text("\n", seconds(30))) return program;
    const auto& text = program->output_text();
    started_ = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
    return program;
  }

  /// The reply's body; "" when there was none.
  std::string curl(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"curl", "-s", "--max-time", "10",
                                        "http://" + started_.value("listen", "") + path};
    command.insert(command.end(), more.begin(), more.end());
    return Program(command, folder_.path()).wait(seconds(30)).out;
  }

  std::vector<Json> journal(const std::string& type) const {
    std::ifstream file(folder_ / "j");
    std::vector<Json> found;
    for (std::string line; std::getline(file, line);) {
      auto record = Json::parse(line, nullptr, false);
      EXPECT_TRUE(record.is_object()) << line;
      if (record.is_object() && record["type"] == type) found.push_back(std::move(record));
    }
    return found;
  }

  Outcome refused(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "proxy");
    const auto outcome = leafcutter(arguments, folder_.path(), seconds(30));
    EXPECT_EQ(outcome.exit, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    return outcome;
  }

  Folder folder_;
  Json started_;
};

TEST_F(ToxiproxyCommand, EndsInOrderOnEitherSignal) {
  for (const auto& [signal, code] : {std::pair(SIGTERM, 0), std::pair(SIGINT, 130)}) {
    auto program = start({"--seed", "5"});
    EXPECT_EQ(started_["type"], "toxiproxy-started");
    EXPECT_EQ(started_["seed"], 5);
    EXPECT_EQ(curl("/version"), "{\"version\": \"2.12.0\"}\n");
    program->signal_alone(signal);
    const auto outcome = program->wait(seconds(20));
    EXPECT_EQ(outcome.exit, code) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("{\"type\":\"toxiproxy-stopped\",\"dropped_records\":0}\n"));
  }
}

TEST_F(ToxiproxyCommand, TheJournalSaysWhichConnectionsAToxicStruck) {
  folder_.write("p.json", R"([{"name": "self", "listen": "localhost:0", "upstream": "localhost:1", "lisen": "x",
    "toxics": [{"type": "reset_peer", "only": {"connections": {"last": 1}}}]}])");
  auto program = start({"--config", "p.json", "--journal", "j"});
  const std::string listen = started_["proxies"].at(0)["listen"];
  // Led to our own interface: the first request is reset, the second is answered.
  curl("/proxies/self", {"-d", R"({"upstream": ")" + started_["listen"].get<std::string>() + "\"}"});
  const auto through = [&] {
    return Program({"curl", "-s", "--max-time", "10", "http://" + listen + "/version"}, folder_.path())
        .wait(seconds(20));
  };
  EXPECT_EQ(through().out, "");
  EXPECT_THAT(through().out, HasSubstr("2.12.0"));
  program->signal_alone(SIGTERM);
  const auto outcome = program->wait(seconds(20));
  EXPECT_THAT(outcome.err,
              HasSubstr("warning: p.json: proxies[0].lisen is no field of a proxy; did you mean \"listen\"?"));
  const auto struck = journal("struck");
  ASSERT_EQ(struck.size(), 1U);
  EXPECT_EQ(struck[0]["connection"], 1);
  EXPECT_EQ(struck[0]["fault"], "reset_peer_downstream");
  EXPECT_EQ(journal("toxiproxy-started").size(), 1U);
  EXPECT_EQ(journal("toxiproxy-stopped").size(), 1U);
  EXPECT_EQ(journal("connection-closed").size(), 2U);
}

TEST_F(ToxiproxyCommand, RefusesWhatMakesNoSense) {
  folder_.write("run.yaml", "");
  folder_.write("token", "short\n");
  folder_.write("bad.json", R"([{"name": "a", "upstream": "b:1", "toxics": [{"type": "lag"}]}])");
  const std::string loopback = "127.0.0.1:0";
  EXPECT_THAT(refused({}).err, HasSubstr("leafcutter proxy --toxiproxy 127.0.0.1:8474"));
  EXPECT_THAT(refused({"run.yaml", "--toxiproxy", loopback}).err,
              StartsWith("error: --toxiproxy: the phases of run.yaml replace all faults"));
  EXPECT_THAT(refused({"run.yaml", "--config", "bad.json"}).err,
              HasSubstr("a settings file comes before the command: leafcutter --config FILE proxy RUN"));
  EXPECT_THAT(refused({"run.yaml", "--toxiproxy-token-file", "token"}).err, HasSubstr("there is no --toxiproxy"));
  EXPECT_THAT(refused({"--toxiproxy", loopback, "--watch"}).err, StartsWith("error: --watch: "));
  EXPECT_THAT(refused({"--toxiproxy", loopback, "--replay", "j"}).err, StartsWith("error: --replay: "));
  EXPECT_THAT(refused({"--toxiproxy", "nowhere"}).err, HasSubstr("\"nowhere\" has no port"));
  EXPECT_THAT(refused({"--toxiproxy", "0.0.0.0:0"}).err, HasSubstr("outside of loopback needs a token"));
  EXPECT_THAT(refused({"--toxiproxy", "0.0.0.0:0", "--toxiproxy-token-file", "token"}).err,
              HasSubstr("the token in token has 5 characters; 16 or more would do"));
  EXPECT_THAT(refused({"--toxiproxy", loopback, "--config", "none.json"}).err, HasSubstr("none.json"));
  EXPECT_EQ(refused({"--toxiproxy", loopback, "--config", "bad.json"}).err,
            "error: bad.json: invalid toxic type (toxics[0]) at proxy 1\n");
  auto program = start({});
  EXPECT_THAT(refused({"--toxiproxy", started_["listen"].get<std::string>()}).err, HasSubstr("Address already in use"));
}

}  // namespace
