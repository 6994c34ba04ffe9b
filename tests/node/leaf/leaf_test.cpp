// Whole leaves without faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

TEST(Leaf, RunsAServiceAndItsWorkloadToTheEnd) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - post: shop/lines
    json: { id: a }
    expect: { status: 201 }
  - get: shop/lines
    expect: { status: 200, json: { count: 1 } }
properties:
  - name: the shop kept it
    check: { get: shop/lines, json: { count: 1 } }
  - name: the file has it
    check: { run: [/bin/grep, -c, a, "${shop.data}/lines"], exit: 0 }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_TRUE(ran.exit.clean);
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(ran.end()["dropped"], 0);
  ASSERT_FALSE(ran.events.empty());
  EXPECT_EQ(ran.events.front().kind, "leaf.begin");
  EXPECT_EQ(ran.events.front().attrs["isolation"], true);
  EXPECT_EQ(ran.events.front().attrs["schema"], protocols::trace_schema);
  EXPECT_EQ(ran.of("ready", "shop").size(), 1u);
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  for (const auto& step : steps) {
    EXPECT_EQ(step.attrs["outcome"], "replied");
    EXPECT_EQ(step.attrs["expected"], true);
  }
  EXPECT_EQ(steps[0].attrs["status"], 201);
  EXPECT_EQ(steps[1].attrs["json"]["count"], 1);
  EXPECT_EQ(ran.of("request", "workload -> shop").size(), 2u);
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  auto checks = ran.of("check");
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].attrs["ok"], true);
  EXPECT_EQ(checks[0].attrs["status"], 200);
  EXPECT_EQ(checks[1].attrs["ok"], true);
  EXPECT_EQ(checks[1].attrs["exit"], 0);
  EXPECT_EQ(ran.of("sites").size(), 1u);
}

TEST(Leaf, ChecksWaitForAServiceThatRecoversWithoutExiting) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - post: shop/recover
  - settle: { quiet: 1ms, within: 1s }
properties:
  - name: the shop answers
    check: { get: shop/lines, status: 200 }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("check").size(), 1u);
  EXPECT_EQ(ran.of("check")[0].attrs["ok"], true);
  EXPECT_EQ(ran.of("ready", "shop").size(), 1u) << "it was never restarted";
}

TEST(Leaf, TwoLeavesUseTheSamePortAtTheSameTime) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - run: [/bin/sh, -c, "sleep 0.3"]
  - post: shop/lines
    json: { id: a }
  - get: shop/lines
    expect: { json: { count: 1 } }
)");
  const auto first = nest.start(nest.job()), second = nest.start(nest.job());
  const auto a = nest.wait(first), b = nest.wait(second);
  for (const auto& ran : {a, b}) {
    SCOPED_TRACE(ran.text());
    EXPECT_TRUE(ran.exit.clean);
    EXPECT_EQ(ran.end()["cause"], "completed");
    ASSERT_EQ(ran.of("step").size(), 3u);
    EXPECT_EQ(ran.of("step")[2].attrs["expected"], true);
  }
  // They ran side by side: either began before the other was over.
  EXPECT_LT(std::max(a.began, b.began), std::min(a.ended, b.ended));
}

TEST(Leaf, ADataFolderIsFreshAndSeeded) {
  Nest nest;
  nest.write("seed/lines", "one\ntwo\n");
  nest.give(R"(
leafcutter: 1
name: seeded
services:
  shop:
    run: [bin/web, --port, "${port}", --data, "${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { tcp: http }
    data: { copy: seed }
    prepare: [[/bin/sh, -c, "echo prepared >> ${data}/lines"]]
workload:
  - post: shop/lines
    json: { id: a }
  - get: shop/lines
    expect: { json: { count: 4 } }
)");
  for (int i = 0; i < 2; ++i) {
    const auto ran = nest.run();
    SCOPED_TRACE(ran.text());
    ASSERT_EQ(ran.of("step").size(), 2u);
    EXPECT_EQ(ran.of("step")[1].attrs["expected"], true);
  }
  EXPECT_EQ(nest.read("seed/lines"), "one\ntwo\n");
}

TEST(Leaf, AServiceThatIsNeverReadyIsInfrastructure) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: never
services:
  shop:
    run: [bin/web, --port, "8081", --data, "${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health, within: 300ms }
workload:
  - get: shop/lines
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  EXPECT_TRUE(ran.exit.clean);
  EXPECT_EQ(ran.end()["cause"], "infra");
  EXPECT_EQ(ran.end()["reason"], "not-ready");
  const auto detail = ran.end().value("detail", "");
  EXPECT_NE(detail.find("shop: not ready within 300ms"), std::string::npos) << detail;
  EXPECT_NE(detail.find("refused"), std::string::npos) << detail;
  EXPECT_TRUE(ran.of("step").empty());
}

TEST(Leaf, AServiceThatDiesAtOnceIsInfrastructureAndSaysWhy) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: dies
services:
  shop:
    run: [/bin/sh, -c, "echo no licence >&2; exit 3"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
workload:
  - get: shop/lines
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["reason"], "not-ready");
  const auto detail = ran.end().value("detail", "");
  EXPECT_NE(detail.find("exit status 3"), std::string::npos) << detail;
  EXPECT_NE(detail.find("no licence"), std::string::npos) << detail;
  ASSERT_EQ(ran.of("exit", "shop").size(), 1u);
  EXPECT_EQ(ran.of("exit")[0].attrs["status"], 3);
  EXPECT_EQ(ran.of("exit")[0].attrs["injected"], false);
  ASSERT_EQ(ran.of("log", "shop").size(), 1u);
  EXPECT_EQ(ran.of("log")[0].attrs["line"], "no licence");
  EXPECT_EQ(ran.of("log")[0].attrs["stream"], "stderr");
}

TEST(Leaf, AProgramThatDoesNotExistIsNamed) {
  Nest nest;
  std::filesystem::copy_file(nest.folder() + "/bin/web", nest.folder() + "/bin/gone");
  nest.give(R"(
leafcutter: 1
name: missing
services:
  shop:
    run: [bin/gone]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
workload:
  - get: shop/lines
)");
  std::filesystem::remove(nest.folder() + "/bin/gone");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["reason"], "not-ready");
  const auto detail = ran.end().value("detail", "");
  EXPECT_NE(detail.find("No such file"), std::string::npos) << detail;
  EXPECT_NE(detail.find("bin/gone"), std::string::npos) << detail;
}

TEST(Leaf, ThatRunsOutOfTimeSaysWhatItWaitedFor) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - name: endless
    run: [/bin/sleep, "100"]
    within: 50s
)");
  auto job = nest.job();
  job.timeout = std::chrono::seconds(1);
  const auto ran = nest.wait(nest.start(job));
  SCOPED_TRACE(ran.text());
  EXPECT_TRUE(ran.exit.clean);
  EXPECT_EQ(ran.end()["cause"], "timeout");
  EXPECT_NE(ran.end().value("detail", "").find("step \"endless\""), std::string::npos);
  EXPECT_LT(ran.took, std::chrono::seconds(5));
}

TEST(Leaf, ServicesStartWhenWhatTheyNeedIsReady) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: order
services:
  shop:
    run: [bin/web, --port, "8080", --data, "${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { log: "listening on 80\\d+" }
    needs: [broker]
  broker:
    run: [bin/web, --port, "8081", --data, "${data}", --slow-start, "100"]
    ports: { http: { port: 8081, protocol: http } }
    ready: { run: [/bin/bash, -c, "exec 3<>/dev/tcp/127.0.0.1/8081"] }
workload:
  - get: shop/health
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("ready", "broker").size(), 1u);
  ASSERT_EQ(ran.of("start", "shop").size(), 1u);
  EXPECT_GT(ran.of("start", "shop")[0].at, ran.of("ready", "broker")[0].at);
  EXPECT_GE(ran.of("ready", "broker")[0].attrs["after_ms"], 100);
}

}  // namespace
}  // namespace leafcutter::node::testing
