// Links between services that speak IPv6, IPv4, or one each.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

constexpr const char* answer_program = R"(
import socket, sys
six = ':' in sys.argv[1]
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
if six: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 7000))
s.listen()
d = socket.socket(s.family, socket.SOCK_DGRAM)
d.bind((sys.argv[1], 7001))
import threading
def datagrams():
  while True:
    b, who = d.recvfrom(100)
    d.sendto(b.upper(), who)
threading.Thread(target=datagrams, daemon=True).start()
print("listens", flush=True)
while True:
  c, _ = s.accept()
  c.sendall(c.recv(100).upper())
  c.close()
)";

/// Asks each of its arguments over TCP, then UDP; prints what came back.
constexpr const char* ask_program = R"(
import socket, sys, threading
heard = []
for a in sys.argv[1:]:
  for kind, port in ((socket.SOCK_STREAM, 7000), (socket.SOCK_DGRAM, 7001)):
    s = socket.socket(socket.AF_INET6 if ':' in a else socket.AF_INET, kind)
    s.settimeout(5)
    try:
      s.connect((a, port))
      s.send(b'leaf')
      heard.append(s.recv(100).decode() or 'nothing')
    except Exception as e: heard.append(repr(e))
print('heard', *heard, flush=True)
threading.Event().wait()
)";

Ran ask_answer(Nest& nest, const std::string& listens_on, const std::string& links) {
  nest.write("bin/answer.py", answer_program);
  nest.write("bin/ask.py", ask_program);
  nest.give(R"(
leafcutter: 1
name: six
services:
  answer:
    run: [python3, "${scenario}/bin/answer.py", ")" +
            listens_on + R"("]
    ports: { main: { port: 7000, protocol: tcp }, datagrams: { port: 7001, protocol: udp } }
    ready: { log: listens }
  ask:
    run: [python3, "${scenario}/bin/ask.py", "fd77::1", "::1", "10.77.0.1", answer]
    ready: { log: heard }
    needs: [answer]
links: [)" + links +
            R"(]
workload:
  - run: [/bin/true]
)");
  return nest.run();
}

class ListensOn : public ::testing::TestWithParam<const char*> {};

TEST_P(ListensOn, AndIsReachedByEveryAddress) {
  Nest nest;
  const auto ran = ask_answer(nest, GetParam(), "\"ask -> answer:main\", \"ask -> answer:datagrams\"");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("log", "ask").size(), 1u);
  EXPECT_EQ(ran.of("log", "ask")[0].attrs["line"], "heard LEAF LEAF LEAF LEAF LEAF LEAF LEAF LEAF");
  EXPECT_EQ(ran.of("connect").size(), 8u) << "every one by its link";
  EXPECT_TRUE(ran.of("egress.refused").empty());
}

INSTANTIATE_TEST_SUITE_P(Addresses, ListensOn, ::testing::Values("fd77::1", "::1", "::", "0.0.0.0", "10.77.0.1"));

TEST(IPv6, WithoutALinkNothingIsReached) {
  Nest nest;
  const auto ran = ask_answer(nest, "::", "workload -> answer:main");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("log", "ask").size(), 1u);
  const auto line = ran.of("log", "ask")[0].attrs.value("line", "");
  EXPECT_EQ(line.find("LEAF"), std::string::npos) << line;
  EXPECT_EQ(line.find("timeout"), std::string::npos) << line;
  EXPECT_TRUE(ran.of("connect", "ask -> answer:main").empty());
}

}  // namespace
}  // namespace leafcutter::node::testing
