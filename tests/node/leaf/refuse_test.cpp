// A refused connection as its caller sees it: connect() itself fails with ECONNREFUSED, and no other one does.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

/// Greets whoever connects on ports 7000 (both families), and keeps count.
constexpr const char* greeter_program = R"(
import socket
s = socket.create_server(('', 7000), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200)
print('listens', flush=True)
while True:
  c, _ = s.accept()
  c.sendall(b'hello')
  c.close()
)";

/// Dials as its arguments say, one after the other; prints how each went. "all ADDRESS N" dials N times at once.
constexpr const char* dialler_program = R"(
import errno, select, socket, sys, threading
def name(e): return errno.errorcode.get(e.errno, repr(e))
def family(a): return socket.AF_INET6 if ':' in a else socket.AF_INET
def greeted(s):
  s.settimeout(5)
  return s.recv(100).decode() or 'nothing'
def blocking(a):
  s = socket.socket(family(a))
  s.connect((a, 7000))
  return greeted(s)
def waiting(a):
  s = socket.socket(family(a))
  s.setblocking(False)
  e = s.connect_ex((a, 7000))
  if e == errno.EINPROGRESS:
    select.select([], [s], [], 5)
    e = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
  elif e != 0: return 'at-once:' + errno.errorcode[e]
  again = s.connect_ex((a, 7000))
  if e == 0 and again not in (0, errno.EISCONN): return 'again:' + errno.errorcode[again]
  return errno.errorcode[e] if e else greeted(s)
def twice(a):
  s = socket.socket(family(a))
  try: s.connect((a, 7000))
  except OSError as e:
    s.connect((a, 7000))
    return name(e) + '-then-' + greeted(s)
  return greeted(s)
def dial(how, a):
  try: return how(a)
  except OSError as e: return name(e)
ways = {'blocking': blocking, 'waiting': waiting, 'twice': twice}
went = []
words = iter(sys.argv[1:])
for word in words:
  address = next(words)
  if word != 'all':
    went.append(dial(ways[word], address))
    continue
  heard = []
  crowd = [threading.Thread(target=lambda: heard.append(dial(blocking, address))) for i in range(int(next(words)))]
  for t in crowd: t.start()
  for t in crowd: t.join()
  went += sorted(heard)
print('went', *went, flush=True)
)";

struct Dialled {
  std::string arguments;    ///< of the program that dials
  std::string more = {};    ///< keys of the service `ask`
  std::string others = {};  ///< further services
  std::string links = "ask -> greeter";
  std::string workload = "  - run: [/bin/true]\n";
};

Ran run_dials(Nest& nest, const Dialled& dialled, const scenarios::Plan& plan) {
  nest.write("bin/greeter.py", greeter_program);
  nest.write("bin/dial.py", dialler_program);
  nest.give(R"(
leafcutter: 1
name: dials
services:
  greeter:
    run: [python3, "${scenario}/bin/greeter.py"]
    ports: { main: { port: 7000, protocol: tcp } }
    ready: { log: listens }
  ask:
    run: [/bin/sh, -c, 'python3 ${scenario}/bin/dial.py )" +
            dialled.arguments + R"(; exec sleep 1000']
    ready: { log: went }
    needs: [greeter]
)" + dialled.more +
            dialled.others + "links: [ " + dialled.links + " ]\nworkload:\n" + dialled.workload);
  return nest.run(plan);
}

scenarios::Plan refusing(std::uint32_t nth, const std::string& link = "ask -> greeter") {
  scenarios::Plan plan;
  plan.faults.push_back({"refuse", {link, "connect", "tcp"}, nth, Value::object()});
  return plan;
}

/// "1+ 2- 3+": the connections of the link by number, and whether they were opened.
std::string opened(const Ran& ran, const std::string& link = "ask -> greeter") {
  std::vector<std::pair<int, bool>> connections;
  for (const auto& event : ran.of("connect", link))
    connections.emplace_back(event.attrs.value("conn", 0), event.attrs.value("accepted", false));
  std::sort(connections.begin(), connections.end());
  std::string text;
  for (const auto& [number, accepted] : connections)
    text += (text.empty() ? "" : " ") + std::to_string(number) + (accepted ? "+" : "-");
  return text;
}

int visits(const Ran& ran, const std::string& link = "ask -> greeter") {
  for (const auto& event : ran.of("sites"))
    for (const auto& site : event.attrs["sites"])
      if (site[0] == link && site[1] == "connect") return site[3];
  return 0;
}

void expect_refused_once(const Ran& ran, int connection, const std::string& link = "ask -> greeter") {
  EXPECT_EQ(ran.end()["cause"], "completed");
  const auto fired = ran.of("fault.fired", link);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["evidence"],
            (Value{{"conn", connection}, {"bytes_forwarded", 0}, {"seen_as", "connect() failed: ECONNREFUSED"}}));
  EXPECT_EQ(ran.of("fault.undone", link).size(), 1u);
  int refused = 0;
  for (const auto& event : ran.of("close", link)) {
    if (event.attrs["conn"] != connection) continue;
    EXPECT_EQ(event.attrs["cause"], "fault:refuse");
    ++refused;
  }
  EXPECT_EQ(refused, 1);
}

TEST(Refuse, IsSeenByABlockingConnectTheNthOfSeveral) {
  Nest nest;
  const auto ran = run_dials(nest, {"blocking greeter blocking greeter blocking greeter"}, refusing(2));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "hello ECONNREFUSED hello");
  expect_refused_once(ran, 2);
  EXPECT_EQ(opened(ran), "1+ 2- 3+");
  EXPECT_EQ(visits(ran), 3) << "as many as without the fault";
}

TEST(Refuse, IsSeenByANonBlockingConnect) {
  Nest nest;
  const auto ran = run_dials(nest, {"waiting 10.77.0.1 waiting 10.77.0.1 waiting 10.77.0.1"}, refusing(2));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "hello at-once:ECONNREFUSED hello") << "and asking again how it went is no dial";
  expect_refused_once(ran, 2);
  EXPECT_EQ(visits(ran), 3);
}

class RefuseAddress : public ::testing::TestWithParam<const char*> {};

TEST_P(RefuseAddress, WhateverTheCallerCallsIt) {
  Nest nest;
  const std::string dial = " blocking " + std::string(GetParam());
  const auto ran = run_dials(nest, {dial + dial + dial}, refusing(3));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "hello hello ECONNREFUSED");
  expect_refused_once(ran, 3);
  EXPECT_EQ(visits(ran), 3);
}

INSTANTIATE_TEST_SUITE_P(Addresses, RefuseAddress,
                         ::testing::Values("10.77.0.1", "fd77::1", "127.0.0.1", "::1", "::ffff:10.77.0.1", "0.0.0.0",
                                           "::"));

TEST(Refuse, ASocketThatWasRefusedCanDialAgain) {
  Nest nest;
  const auto ran = run_dials(nest, {"twice 10.77.0.1 blocking 10.77.0.1"}, refusing(1));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "ECONNREFUSED-then-hello hello");
  EXPECT_EQ(opened(ran), "1- 2+ 3+");
}

TEST(Refuse, AnOccurrenceThatNeverComesIsNotStruck) {
  Nest nest;
  const auto ran = run_dials(nest, {"blocking greeter waiting 10.77.0.1 blocking fd77::1"}, refusing(4));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "hello hello hello");
  EXPECT_TRUE(ran.of("fault.fired").empty());
  EXPECT_EQ(opened(ran), "1+ 2+ 3+");
}

TEST(Refuse, OfTwoCallersTheOneThatIsMeant) {
  Nest nest;
  const std::string crowd = R"(  other:
    run: [/bin/sh, -c, 'python3 ${scenario}/bin/dial.py all greeter 5 all fd77::1 5; exec sleep 1000']
    ready: { log: went }
    needs: [greeter]
)";
  const auto ran = run_dials(
      nest, {.arguments = "all greeter 5 all fd77::1 5", .others = crowd, .links = "ask -> greeter, other -> greeter"},
      refusing(7, "other -> greeter"));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "hello hello hello hello hello hello hello hello hello hello");
  EXPECT_EQ(went(ran, "other"), "hello hello hello hello hello ECONNREFUSED hello hello hello hello");
  expect_refused_once(ran, 7, "other -> greeter");
  EXPECT_EQ(opened(ran, "other -> greeter"), "1+ 2+ 3+ 4+ 5+ 6+ 7- 8+ 9+ 10+");
  EXPECT_EQ(visits(ran, "ask -> greeter"), 10);
}

TEST(Refuse, TheOrdinalsOfOtherFaultsAreThoseOfTheBaseline) {
  Nest nest;
  auto plan = refusing(1);
  plan.faults.push_back({"truncate", {"ask -> greeter", "connect", "tcp"}, 2, {{"keep", 4}}});
  plan.faults.push_back({"latency", {"ask -> greeter", "connect", "tcp"}, 3, {{"for", "5ms"}}});
  const auto ran = run_dials(nest, {"blocking greeter blocking greeter blocking greeter"}, plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "ECONNREFUSED hell hello");
  const auto fired = ran.of("fault.fired");
  ASSERT_EQ(fired.size(), 3u);
  for (const auto& event : fired) EXPECT_EQ(event.attrs["evidence"]["conn"], event.attrs["occurrence"]);
}

TEST(Refuse, WhatAServiceRunsBeforehandCountsToo) {
  Nest nest;
  const std::string prepare = R"(    prepare: [[python3, "${scenario}/bin/dial.py", blocking, 10.77.0.1]]
)";
  const auto ran = run_dials(nest, {.arguments = "blocking greeter blocking greeter", .more = prepare}, refusing(2));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran), "ECONNREFUSED hello");
  expect_refused_once(ran, 2);
  EXPECT_EQ(visits(ran), 3);
}

TEST(Refuse, IsSeenByTheWorkload) {
  Nest nest;
  const std::string steps = R"(  - { tcp: greeter, send: "x", until: hello }
  - run: [python3, "${scenario}/bin/dial.py", blocking, greeter, waiting, 10.77.0.1]
  - { tcp: greeter, send: "x", until: hello }
)";
  for (const int nth : {1, 3, 4}) {
    const auto ran = run_dials(
        nest, {.arguments = "blocking greeter", .links = "workload -> greeter, ask -> greeter", .workload = steps},
        refusing(static_cast<std::uint32_t>(nth), "workload -> greeter"));
    SCOPED_TRACE(ran.text());
    expect_refused_once(ran, nth, "workload -> greeter");
    const auto done = ran.of("step");
    ASSERT_EQ(done.size(), 3u);
    EXPECT_EQ(done[0].attrs["outcome"], nth == 1 ? "no-reply" : "replied");
    EXPECT_EQ(done[2].attrs["outcome"], nth == 4 ? "no-reply" : "replied");
    const auto& failed = done[nth == 1 ? 0 : 2].attrs;
    EXPECT_EQ(failed.value("detail", "").find("Connection refused") != std::string::npos, nth != 3);
    EXPECT_EQ(visits(ran, "workload -> greeter"), 4);
    EXPECT_EQ(went(ran), "hello");
  }
}

}  // namespace
}  // namespace leafcutter::node::testing
