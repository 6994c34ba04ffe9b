// What steps can say and do.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

Ran run_steps(const std::string& steps) {
  Nest nest;
  nest.give(std::string(one_service) + "workload:\n" + steps);
  return nest.run();
}

TEST(Workload, ABrokenExpectationIsSaid) {
  const auto ran = run_steps("  - { get: shop/nowhere, expect: { status: 200 } }\n");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "replied");
  EXPECT_EQ(ran.of("step")[0].attrs["status"], 404);
  EXPECT_EQ(ran.of("step")[0].attrs["expected"], false);
  EXPECT_NE(ran.of("step")[0].attrs.value("detail", "").find("404"), std::string::npos);
}

TEST(Workload, RepeatsSavesAndDecides) {
  const auto ran = run_steps(R"(
  - repeat: 3
    as: i
    do:
      - post: shop/lines
        json: { id: "order-${i}", n: "${i}" }
        expect: { status: 201, json: { id: "order-${i}" } }
        save: { last: json.id }
  - get: shop/lines
    save: { many: json.count >= 3, count: json.count }
  - name: taken
    when: many and last == "order-3"
    run: [/bin/sh, -c, "echo {\\\"n\\\": ${count}}"]
    expect: { exit: 0, json: { n: 3 } }
  - name: left out
    when: not many
    run: [/bin/false]
)");
  SCOPED_TRACE(ran.text());
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 6u);
  for (const auto& step : steps) EXPECT_EQ(step.attrs["expected"], true) << step.attrs;
  EXPECT_EQ(steps[2].attrs["json"]["id"], "order-3");
  EXPECT_EQ(steps[4].attrs["json"]["n"], 3);
  EXPECT_EQ(steps[5].attrs["outcome"], "skipped");
}

TEST(Workload, ExchangesBytes) {
  const auto ran = run_steps(R"(
  - tcp: shop
    send: "GET /health HTTP/1.1\r\nHost: shop\r\n\r\n"
    until: "ok\".*\\}"
    expect: { reply: { matches: "200 X" } }
)");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "replied");
  EXPECT_EQ(ran.of("step")[0].attrs["expected"], true);
}

TEST(Workload, BranchesRunSideBySideInLanesOfTheirOwn) {
  const auto ran = run_steps(R"(
  - parallel:
      - [ { name: a, run: [/bin/sh, -c, "i=0; until test -e /tmp/b || test $i = 500; do i=$((i+1)); sleep 0.01; done; test -e /tmp/b"], expect: { exit: 0 } } ]
      - [ { name: b, run: [/bin/touch, /tmp/b], expect: { exit: 0 } } ]
  - { get: shop/health }
)");
  SCOPED_TRACE(ran.text());
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(ran.of("step", "workload/1").size(), 1u);
  EXPECT_EQ(ran.of("step", "workload/2").size(), 1u);
  for (const auto& step : steps) EXPECT_EQ(step.attrs["expected"], true) << step.attrs;
  // The step after the branches happened after both.
  auto after = ran.of("step", "workload");
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].clock.at("workload/1"), 1u);
  EXPECT_EQ(after[0].clock.at("workload/2"), 1u);
}

TEST(Workload, SettleWaitsForQuietAndSaysWhenThereIsNone) {
  const auto ran = run_steps(R"(
  - { get: shop/health }
  - parallel:
      - [ { repeat: 2000, do: [ { get: shop/health } ] } ]
      - [ { settle: { quiet: 150ms, within: 200ms } } ]
  - settle: { quiet: 150ms, within: 3s }
)");
  SCOPED_TRACE(ran.text());
  auto settled = ran.of("settled");
  ASSERT_EQ(settled.size(), 2u);  // the last step is a settle: none is added
  EXPECT_EQ(settled[0].attrs["ok"], false);
  EXPECT_EQ(settled[1].attrs["ok"], true);
  EXPECT_GE(settled[1].at - ran.of("reply").back().at, std::chrono::milliseconds(145));
}

TEST(Workload, ACommandThatHangsIsKilledAndItsOutputIsBounded) {
  const auto ran = run_steps(R"(
  - { name: hangs, run: [/bin/sh, -c, "sleep 100 & wait"], within: 200ms }
  - { name: talks, run: [/bin/sh, -c, "yes | head -c 1000000"], expect: { exit: 0 } }
)");
  SCOPED_TRACE(ran.text());
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].attrs["outcome"], "no-reply");
  EXPECT_EQ(steps[1].attrs["expected"], true);
}

TEST(Workload, NothingDumpsCoreUnlessItAsksForIt) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &before), 0);
  ASSERT_GT(before.rlim_max, 4096u) << "this host lets nobody dump core: the hard limit has to be raised";
  const rlimit generous{before.rlim_max, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &generous), 0);
  const auto ran = run_steps(R"(
  - { name: limit, run: [/bin/sh, -c, "ulimit -S -c"], expect: { exit: 0, stdout: "0\n" } }
  - { name: asks, run: [/bin/sh, -c, "ulimit -S -c 8 && ulimit -S -c"], expect: { exit: 0, stdout: "8\n" } }
)");
  ::setrlimit(RLIMIT_CORE, &before);
  SCOPED_TRACE(ran.text());
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  for (const auto& step : steps) EXPECT_EQ(step.attrs["expected"], true) << step.attrs;
}

TEST(Workload, LogLinesAreBounded) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: chatty
services:
  shop:
    run: [/bin/sh, -c, "head -c 10000 /dev/zero | tr '\\0' x; echo; printf '\\377\\n'; seq 2000; exec ${scenario}/bin/web --port 8080 --data ${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
workload:
  - { get: shop/health, expect: { status: 200 } }
)");
  const auto ran = nest.run();
  EXPECT_EQ(ran.end()["cause"], "completed");
  auto lines = ran.of("log", "shop");
  ASSERT_EQ(lines.size(), 1000u);
  EXPECT_EQ(lines[0].attrs.value("line", "").size(), 4096u);
  EXPECT_EQ(lines[1].attrs["line"], "\xef\xbf\xbd");
  EXPECT_EQ(ran.end()["log_lines_dropped"], 1003);
}

}  // namespace
}  // namespace leafcutter::node::testing
