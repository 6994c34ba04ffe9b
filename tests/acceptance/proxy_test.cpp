// leafcutter proxy between the distribution's redis-cli and redis-server: phases, signals, edits, replays.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support.hpp"

namespace {

namespace fs = std::filesystem;
using acceptance::content;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using acceptance::leafcutter_command;
using acceptance::Outcome;
using acceptance::Program;
using acceptance::records;
using std::chrono::seconds;
using testing::HasSubstr;

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

class ProxyCommand : public testing::Test {
 protected:
  ProxyCommand()
      : redis_({"redis-server", "--port", std::to_string(redis_port_), "--bind", "127.0.0.1", "--save", ""},
               folder_.path()) {
    redis_.wait_for_output_text("Ready to accept connections", seconds(30));
  }

  /// A document with the proxy "redis"; `phases` is YAML below "phases:".
  std::string run_of(const std::string& phases, const std::string& seed = "1",
                     const std::string& listen = "127.0.0.1:0") {
    return "schema_version: 2\nseed: " + seed +
           "\nproxies:\n  - name: redis\n    protocol: tcp\n    listen: " + listen +
           "\n    upstream: 127.0.0.1:" + std::to_string(redis_port_) + "\nphases:\n" + phases;
  }

  /// Starts the command; waits until it listens, and takes the port.
  std::unique_ptr<Program> start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"proxy", folder_ / "run.yaml"});
    auto program = std::make_unique<Program>(leafcutter_command(std::move(arguments)), folder_.path());
    if (!program->wait_for_output_text("\"phase-started\"", seconds(30))) return program;
    const auto started =
        records(program->output_text().substr(0, program->output_text().find('\n') + 1), "run-started");
    const std::string listen = started.at(0)["endpoints"][0]["listen"];
    port_ = listen.substr(listen.rfind(':') + 1);
    return program;
  }

  std::string ask(const std::vector<std::string>& question) {
    std::vector<std::string> command = {"redis-cli", "-p", port_};
    command.insert(command.end(), question.begin(), question.end());
    const auto outcome = Program(command, folder_.path()).wait(seconds(20));
    return outcome.out + outcome.err;
  }

  /// Whether a client is blocked in BLPOP, by and by.
  bool somebody_waits() {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (std::chrono::steady_clock::now() < deadline)
      if (ask({"client", "list"}).find("cmd=blpop") != std::string::npos) return true;
    return false;
  }

  Folder folder_;
  int redis_port_ = free_port();
  Program redis_;
  std::string port_;
};

TEST_F(ProxyCommand, PhasesFollowEachOtherAndTheLastOneEndsIt) {
  folder_.write("run.yaml", run_of("  - { name: one, duration: 300ms }\n  - { name: two, duration: 200ms }\n"));
  const auto outcome = leafcutter({"proxy", folder_ / "run.yaml", "--journal", folder_ / "j"}, folder_.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  for (const auto& text : {outcome.out, content(folder_ / "j")}) {
    EXPECT_THAT(text, testing::StartsWith("{\"type\":\"run-started\","));
    const auto phases = records(text, "phase-started");
    ASSERT_EQ(phases.size(), 2U);
    EXPECT_EQ(phases[1]["phase"], "two");
    EXPECT_EQ(phases[1]["until_ms"], 500);
    EXPECT_GE(phases[1]["at_ms"].get<double>(), 300);
    const auto completed = records(text, "run-completed");
    ASSERT_EQ(completed.size(), 1U);
    EXPECT_EQ(completed[0]["status"], "completed");
    EXPECT_EQ(completed[0]["dropped_records"], 0);
    EXPECT_GE(completed[0]["at_ms"].get<double>(), 500);
  }
}

TEST_F(ProxyCommand, AFaultBeginsAfterARecordOfTheJournal) {
  folder_.write("run.yaml", run_of("  - name: p\n    proxies:\n      - proxy: redis\n        faults:\n"
                                   "          - { type: latency, id: slow, distribution: { type: fixed, delay_ms: 1 }, "
                                   "select: { connections: { first: 2, last: 2 } } }\n"
                                   "          - { type: refuse, after: { record: struck, fault: slow } }\n"));
  auto program = start({"--journal", folder_ / "j"});
  EXPECT_EQ(ask({"ping"}), "PONG\n");
  EXPECT_EQ(ask({"ping"}), "PONG\n") << "it is the second that is slow";
  ASSERT_TRUE(program->wait_for_output_text("\"fault-begun\"", seconds(20)));
  EXPECT_THAT(ask({"ping"}), HasSubstr("Connection refused"));
  program->signal_alone(SIGTERM);
  const auto outcome = program->wait(seconds(20));
  EXPECT_EQ(outcome.exit, 0);
  for (const auto& text : {outcome.out, content(folder_ / "j")}) {
    const auto begun = records(text, "fault-begun");
    ASSERT_EQ(begun.size(), 1U);
    EXPECT_EQ(begun[0]["fault"], "refuse");
    EXPECT_EQ(begun[0]["after"], (Json{{"record", "struck"}, {"proxy", "redis"}, {"fault", "slow"}, {"count", 1}}));
  }
}

TEST_F(ProxyCommand, SignalsEndItInOrderWithAWholeJournal) {
  for (const auto& [signal, code, status] :
       {std::tuple(SIGINT, 130, "interrupted"), std::tuple(SIGTERM, 0, "terminated")}) {
    folder_.write("run.yaml",
                  run_of("  - { name: slow, proxies: [ { proxy: redis, faults: [ { type: latency, distribution: "
                         "{ type: fixed, delay_ms: 20 } } ] } ] }\n"));
    const auto journal = folder_ / (std::string("j-") + status);
    auto program = start({"--journal", journal});
    EXPECT_EQ(ask({"set", "k", "v"}), "OK\n");
    // One connection is open and waits for an answer when the signal comes.
    Program waiting({"redis-cli", "-p", port_, "blpop", "nothing", "0"}, folder_.path());
    ASSERT_TRUE(somebody_waits());
    program->signal_alone(signal);
    EXPECT_EQ(program->wait(seconds(20)).exit, code);
    waiting.wait(seconds(20));
    const auto text = content(journal);
    const auto completed = records(text, "run-completed");
    ASSERT_EQ(completed.size(), 1U);
    EXPECT_EQ(completed[0]["status"], status);
    EXPECT_TRUE(text.ends_with("}\n"));
    const auto closed = records(text, "connection-closed");
    EXPECT_EQ(completed[0]["links"]["redis"]["accepted"], records(text, "accepted").size());
    EXPECT_EQ(completed[0]["links"]["redis"]["closed"], closed.size());
    EXPECT_EQ(closed.back()["cause"], "removed");
    EXPECT_GE(records(text, "struck").size(), 2U);
    EXPECT_EQ(completed[0]["links"]["redis"]["strikes"], records(text, "struck").size());
  }
}

TEST_F(ProxyCommand, WhatIsWrongIsNamedAndNothingIsRun) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const auto outcome = leafcutter(arguments, folder_.path(), seconds(20));
    EXPECT_EQ(outcome.exit, 2);
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
  };
  folder_.write("bad.yaml", run_of("  - { name: p, duration: 1s, proxies: [ { proxy: rdis, faults: [] } ] }\n"));
  refused({"proxy", "bad.yaml", "--journal", "never"},
          "bad.yaml:9:50: phases[0].proxies[0].proxy: no proxy is called \"rdis\"; did you mean \"redis\"?");
  EXPECT_FALSE(fs::exists(folder_.path() / "never"));
  folder_.write("taken.yaml", run_of("  - { name: p }\n", "1", "127.0.0.1:" + std::to_string(redis_port_)));
  refused({"proxy", "taken.yaml", "--journal", "never"},
          "taken.yaml:6:13: proxy \"redis\": listen on 127.0.0.1:" + std::to_string(redis_port_));
  EXPECT_FALSE(fs::exists(folder_.path() / "never"));  // the same command can be given again
  folder_.write("run.yaml", run_of("  - { name: p }\n"));
  folder_.write("there", "something");
  refused({"proxy", "run.yaml", "--journal", "there"}, "--journal: \"there\" exists");
  EXPECT_EQ(content(folder_ / "there"), "something");
  refused({"proxy", "run.yaml", "--replay", "there"}, "there:1:1: not one line of the journal is whole");
  for (const auto* seed : {"-1", "18446744073709551616", "one", "1.5"})
    refused({"proxy", "run.yaml", "--seed", seed},
            "--seed: \"" + std::string(seed) + "\" is no whole number from 0 to 18446744073709551615");
  folder_.write("far.yaml", run_of("  - { name: p }\n", "1", "203.0.113.7:7000"));
  refused({"proxy", "far.yaml"},
          "listen on 203.0.113.7:7000: Cannot assign requested address; this host has no such address");
  refused({"proxy", "run.yaml", "--replay", "missing"}, "missing");
  refused({"proxy", "missing.yaml"}, "missing.yaml");
  refused({"proxy"}, "RUN");
}

TEST_F(ProxyCommand, WhenNobodyReadsItAnyMoreItEndsAndSaysSoOnce) {
  folder_.write("run.yaml", run_of("  - { name: p }\n"));
  const auto leafcutter = (acceptance::build_folder() / "leafcutter").string();
  const auto outcome = Program({"bash", "-c",
                                leafcutter + " proxy run.yaml --journal j | head -n 1; echo ${PIPESTATUS[0]}; " +
                                    leafcutter + " proxy run.yaml > /dev/full; echo $?"},
                               folder_.path())
                           .wait(seconds(60));
  EXPECT_THAT(outcome.out, testing::MatchesRegex("\\{\"type\":\"run-started\".*\n3\n3\n"));
  EXPECT_EQ(outcome.err,
            "error: cannot write to standard output: Broken pipe\n"
            "error: cannot write to standard output: No space left on device\n");
  const auto completed = records(content(folder_ / "j"), "run-completed");
  ASSERT_EQ(completed.size(), 1U);
  EXPECT_EQ(completed[0]["status"], "failed");
}

/// Renamed over, as editors save.
void save(const Folder& folder, const std::string& text) {
  folder.write("run.yaml.new", text);
  fs::rename(folder.path() / "run.yaml.new", folder.path() / "run.yaml");
}

TEST_F(ProxyCommand, AnEditIsCarriedOutAndABadOneIsNot) {
  folder_.write("run.yaml", run_of("  - { name: first }\n"));
  auto program = start({"--watch"});
  const auto port = port_;
  Program open({"redis-cli", "-p", port_, "blpop", "list", "0"}, folder_.path());
  ASSERT_TRUE(somebody_waits());
  save(folder_, run_of("  - { name: broken, duration: 5 }\n"));
  const auto refused = program->wait_for_output_text("\"config-reload-failed\"", seconds(20));
  ASSERT_TRUE(refused);
  EXPECT_THAT(program->output_text(), HasSubstr("phases[0].duration: expected a duration"));
  EXPECT_EQ(ask({"ping"}), "PONG\n");
  save(folder_, run_of("  - { name: first }\n"));  // taken back: nothing to be carried out
  save(folder_, run_of("  - { name: refusing, proxies: [ { proxy: redis, faults: [ { type: refuse } ] } ] }\n"));
  const auto reloaded = program->wait_for_output_text("\"config-reloaded\"", seconds(20), *refused);
  ASSERT_TRUE(reloaded);
  EXPECT_THAT(ask({"ping"}), HasSubstr("refused"));
  // Written in place, through the same file.
  folder_.write("run.yaml", run_of("  - { name: again }\n"));
  ASSERT_TRUE(program->wait_for_output_text("\"again\"", seconds(20), *reloaded));
  EXPECT_EQ(ask({"rpush", "list", "answer"}), "1\n");
  // The connection that was open before the edits has survived them all.
  EXPECT_THAT(open.wait(seconds(20)).out, HasSubstr("answer"));
  program->signal_alone(SIGTERM);
  const auto outcome = program->wait(seconds(20));
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_EQ(records(outcome.out, "config-reloaded").size(), 2U);
  for (const auto& record : records(outcome.out, "config-reloaded")) EXPECT_EQ(record["proxies_changed"], 0);
  EXPECT_EQ(records(outcome.out, "config-reload-failed").size(), 1U);
}

TEST_F(ProxyCommand, ASwappedLinkIsAnEditAndATouchIsNone) {
  // As Kubernetes mounts a ConfigMap: run.yaml -> ..data/run.yaml, and ..data is swapped.
  folder_.write("v1/run.yaml", run_of("  - { name: first }\n"));
  folder_.write("v2/run.yaml", run_of("  - { name: second }\n"));
  fs::create_directory_symlink("v1", folder_.path() / "..data");
  fs::create_symlink("..data/run.yaml", folder_.path() / "run.yaml");
  auto program = start({"--watch"});
  fs::create_directory_symlink("v2", folder_.path() / "..data_tmp");
  fs::rename(folder_.path() / "..data_tmp", folder_.path() / "..data");
  const auto second = program->wait_for_output_text("\"second\"", seconds(20));
  ASSERT_TRUE(second);
  folder_.write("v2/run.yaml", run_of("  - { name: second }\n"));  // says the same
  folder_.write("unrelated", "x");
  folder_.write("v2/run.yaml", run_of("  - { name: third }\n"));
  ASSERT_TRUE(program->wait_for_output_text("\"third\"", seconds(20), *second));
  program->signal_alone(SIGTERM);
  EXPECT_EQ(records(program->wait(seconds(20)).out, "config-reloaded").size(), 2U);
}

TEST_F(ProxyCommand, AReplayDecidesAsTheJournalSaysWhateverTheSeed) {
  const std::string faults =
      "  - { name: p, proxies: [ { proxy: redis, faults: [ { type: reset, flow: to-client, when: first-bytes, select: "
      "{ "
      "probability: 0.5 } } ] } ] }\n";
  const auto execute = [&](const std::string& seed, const std::string& journal, std::vector<std::string> more) {
    folder_.write("run.yaml", run_of(faults, seed));
    more.insert(more.end(), {"--journal", folder_ / journal});
    auto program = start(more);
    std::string answers;
    for (int i = 0; i < 16; ++i) answers += ask({"ping"}).starts_with("PONG") ? '.' : 'R';
    program->signal_alone(SIGTERM);
    EXPECT_EQ(program->wait(seconds(20)).exit, 0);
    return answers;
  };
  const auto recorded = execute("11", "recorded", {});
  ASSERT_THAT(recorded, HasSubstr("R"));
  ASSERT_THAT(recorded, HasSubstr("."));
  EXPECT_EQ(execute("11", "same", {}), recorded);
  EXPECT_NE(execute("12", "other", {}), recorded);
  EXPECT_EQ(execute("12", "replayed", {"--replay", folder_ / "recorded"}), recorded);
}

TEST_F(ProxyCommand, OnATerminalItDrawsAndCleansUp) {
  folder_.write("run.yaml",
                run_of("  - { name: only, proxies: [ { proxy: redis, faults: [ { type: blackhole } ] } ] }\n"));
  Program program(
      {"script", "-qec", (acceptance::build_folder() / "leafcutter").string() + " proxy run.yaml", "/dev/null"},
      folder_.path());
  ASSERT_TRUE(program.wait_for_output_text("phase 1 of 1: only", seconds(20)));
  ASSERT_TRUE(program.wait_for_output_text("blackhole", seconds(20)));
  const auto child = acceptance::child_with(acceptance::child_with(program.pid(), "proxy"), "proxy", seconds(1));
  ::kill(child > 0 ? child : acceptance::child_with(program.pid(), "proxy"), SIGTERM);
  const auto outcome = program.wait(seconds(20));
  EXPECT_EQ(outcome.exit, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("\x1b[?1049h"));
  EXPECT_THAT(outcome.out, HasSubstr("\x1b[?25h\x1b[?1049l"));
  EXPECT_THAT(outcome.out, HasSubstr("terminated"));
}

// The program in docs/embedding.md, which is the whole of docs/examples/embed.cpp.
class Embedding : public ProxyCommand {};

TEST_F(Embedding, TheExampleDoesWhatItsPageSays) {
  ASSERT_EQ(::mkfifo((folder_ / "commands").c_str(), 0600), 0);
  const auto example = acceptance::build_folder() / "docs/examples/example_embed";
  Program program(
      {"bash", "-c", "exec " + example.string() + " 127.0.0.1:" + std::to_string(redis_port_) + " < commands"},
      folder_.path());
  std::ofstream commands(folder_ / "commands");
  const auto end = program.wait_for_output_text("listening on 127.0.0.1:", seconds(20));
  ASSERT_TRUE(end);
  port_ = program.output_text().substr(*end, program.output_text().find('\n', *end) - *end);
  EXPECT_EQ(ask({"ping"}), "PONG\n");
  commands << "slow" << std::endl;
  ASSERT_TRUE(program.wait_for_output_text("slow", seconds(20)));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask({"ping"}), "PONG\n");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  commands << "nonsense" << std::endl;  // no faults
  commands.close();
  const auto outcome = program.wait(seconds(20));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("far struck connection 2\n"));
  EXPECT_THAT(outcome.out, HasSubstr("2 connections, 1 strikes\n"));
}

TEST(EmbeddingPage, ShowsTheExampleAndTheExampleSeesThePublicHeadersAlone) {
  const auto docs = acceptance::source_folder() / "docs";
  const auto source = content((docs / "examples/embed.cpp").string());
  ASSERT_NE(source, "");
  EXPECT_THAT(content((docs / "embedding.md").string()), HasSubstr("```cpp\n" + source + "```\n"));
  std::istringstream lines(source);
  std::vector<std::string> rooms;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#include \"")) rooms.push_back(line);
  EXPECT_THAT(rooms, testing::ElementsAre("#include \"node/proxy/engine.hpp\""));
  // And what that includes in turn is public, too.
  const std::vector<std::string> open = {"base/error.hpp",           "base/unique_fd.hpp",   "node/proxy/event.hpp",
                                         "node/proxy/decisions.hpp", "node/proxy/fault.hpp", "node/proxy/filter.hpp"};
  for (const auto* header : {"engine.hpp", "event.hpp", "decisions.hpp", "fault.hpp", "filter.hpp"}) {
    std::istringstream text(content((acceptance::source_folder() / "node/proxy" / header).string()));
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("#include \"")) {
        EXPECT_THAT(open, testing::Contains(line.substr(10, line.rfind('"') - 10))) << header;
      }
  }
}

}  // namespace
