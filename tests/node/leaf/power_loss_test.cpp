// Power losses: what a service had not durably synced is gone when it comes up again, and nothing else is.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

using nlohmann::literals::operator""_json_pointer;

/// Appends a line to "noted", syncs "kept" each time, and says at its start what it finds.
const char* const diary_program = R"(
import http.server, os, socketserver, sys
os.chdir(sys.argv[1])
def lines(name):
    try:
        with open(name) as file:
            return len(file.readlines())
    except FileNotFoundError:
        return -1
print("found seed", lines("seed"), "noted", lines("noted"), "kept", lines("kept"), "hidden", os.path.isdir("/leaf/.durable") and os.listdir("/leaf/.durable") if os.access("/leaf/.durable", os.R_OK) else "closed", flush=True)
def append(name, durable):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, b"line\n")
    if durable:
        os.fsync(file)
    os.close(file)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/note":
            append("noted", False)
        if self.path == "/keep":
            append("kept", True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("0.0.0.0", 8080), Handler).serve_forever()
)";

std::string diary(const std::string& more = "") {
  return R"(
leafcutter: 1
name: diary
services:
  shop:
    prepare:
      - [/bin/sh, -c, "echo one > seed; echo two >> seed"]
    run: [/usr/bin/python3, "${scenario}/diary.py", "${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health, within: 20s }
    restart: { on: crash, at-most: 3 }
workload:
  - { get: shop/note }
  - { get: shop/keep }
  - { get: shop/health }
)" + more;
}

scenarios::Plan loss(const std::string& kind, scenarios::Site site, std::uint32_t occurrence = 1) {
  scenarios::Plan plan;
  plan.faults.push_back({kind, std::move(site), occurrence, Value::object(), {}});
  return plan;
}

/// What each start of the service found.
std::vector<std::string> found_at_starts(const Ran& ran) {
  std::vector<std::string> lines;
  for (const auto& event : ran.of("log", "shop"))
    if (const auto line = event.attrs["line"].get<std::string>(); line.starts_with("found ")) lines.push_back(line);
  return lines;
}

TEST(PowerLoss, BeforeAStepTakesWhatWasNotSynced) {
  Nest nest;
  nest.write("diary.py", diary_program);
  nest.give(diary());
  const auto ran = nest.run(loss("power-loss", {"shop", "step", "get shop/health"}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  const auto fired = ran.of("fault.fired", "shop"), exits = ran.of("exit", "shop"), undone = ran.of("fault.undone");
  ASSERT_EQ(fired.size(), 1u);
  ASSERT_EQ(exits.size(), 1u);
  ASSERT_EQ(undone.size(), 1u);
  const auto evidence = fired[0].attrs["evidence"];
  ASSERT_TRUE(evidence.contains("lost") && exits[0].attrs.contains("lost"));
  EXPECT_EQ(evidence["signal"], 9);
  EXPECT_EQ(evidence["before_step"], "get shop/health");
  EXPECT_EQ(evidence["lost"].value("lost", Value()), Value::array({"noted"}));
  EXPECT_EQ(evidence["lost"]["names_lost"], 1);
  EXPECT_EQ(exits[0].attrs["lost"], evidence["lost"]);
  EXPECT_EQ(exits[0].attrs["injected"], true);
  EXPECT_EQ(undone[0].attrs["how"], "restarted and ready again; " + evidence["lost"]["text"].get<std::string>());
  // The images are kept where the service finds an empty folder that it may not even read.
  EXPECT_EQ(found_at_starts(ran), (std::vector<std::string>{"found seed 2 noted -1 kept -1 hidden closed",
                                                            "found seed 2 noted -1 kept 1 hidden closed"}));
}

TEST(PowerLoss, ACrashAloneTakesNothing) {
  Nest nest;
  nest.write("diary.py", diary_program);
  nest.give(diary());
  const auto ran = nest.run(loss("crash", {"shop", "step", "get shop/health"}));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_FALSE(ran.of("fault.fired")[0].attrs["evidence"].contains("lost"));
  ASSERT_EQ(ran.of("exit").size(), 1u);
  EXPECT_FALSE(ran.of("exit")[0].attrs.contains("lost"));
  ASSERT_EQ(found_at_starts(ran).size(), 2u);
  EXPECT_NE(found_at_starts(ran)[1].find("seed 2 noted 1 kept 1"), std::string::npos);
}

TEST(PowerLoss, AtASystemCallTakesWhatWasNotSynced) {
  Nest nest;
  nest.write("diary.py", diary_program);
  nest.give(diary());
  const auto ran = nest.run(loss("power-loss-before", {"shop", "fsync", "data:kept"}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  ASSERT_EQ(ran.of("exit", "shop").size(), 1u);
  auto gone = ran.of("exit")[0].attrs.value("/lost/lost"_json_pointer, Value::array());
  std::sort(gone.begin(), gone.end());
  EXPECT_EQ(gone, Value::array({"kept", "noted"}));
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_NE(ran.of("fault.undone")[0].attrs["how"].get<std::string>().find("2 names lost"), std::string::npos);
  ASSERT_EQ(found_at_starts(ran).size(), 2u);
  EXPECT_NE(found_at_starts(ran)[1].find("seed 2 noted -1 kept -1"), std::string::npos);
}

TEST(PowerLoss, AnotherOneFindsTheImageOfTheFirst) {
  Nest nest;
  nest.write("diary.py", diary_program);
  nest.give(diary());
  auto plan = loss("power-loss", {"shop", "step", "get shop/keep"});
  plan.faults.push_back({"power-loss", {"shop", "step", "get shop/health"}, 1, Value::object(), {}});
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 2u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs.value("/evidence/lost/lost"_json_pointer, Value()), Value::array({"noted"}));
  EXPECT_EQ(ran.of("fault.fired")[1].attrs.value("/evidence/lost/names_lost"_json_pointer, -1), 0);
  ASSERT_EQ(found_at_starts(ran).size(), 3u);
  EXPECT_NE(found_at_starts(ran)[2].find("seed 2 noted -1 kept 1"), std::string::npos);
}

TEST(PowerLoss, OfAServiceThatIsDownDoesNotFire) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { get: shop/exit, within: 1s }
  - { run: [/bin/true] }
)");
  const auto ran = nest.run(loss("power-loss", {"shop", "step", "run /bin/true"}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

}  // namespace
}  // namespace leafcutter::node::testing
