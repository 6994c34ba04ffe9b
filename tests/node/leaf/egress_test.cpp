// What a leaf sends out of itself: refused at once, and an event that says who wanted to go where.
#include <gtest/gtest.h>

#include <set>

#include "harness.hpp"
#include "node/leaf/egress.hpp"

namespace leafcutter::node::testing {
namespace {

/// Dials or sends to what its arguments name, "tcp 192.0.2.1 80 TIMES"; prints how each went: one that takes longer
/// than a second was not refused at once. The resolver's trick to learn its own address (a UDP socket connected and
/// never used) sends nothing.
constexpr const char* go_program = R"(
import errno, socket, sys
def family(a): return socket.AF_INET6 if ':' in a else socket.AF_INET
went = []
def go(kind, address, port):
  s = socket.socket(family(address), socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
  s.settimeout(1)
  s.connect((address, int(port)))
  if kind == 'udp':
    s.send(b'hello')
    s.recv(100)
for kind, address, port, times in zip(*[iter(sys.argv[1:])] * 4):
  if kind == 'look':
    socket.socket(family(address), socket.SOCK_DGRAM).connect((address, int(port)))
    continue
  for i in range(int(times)):
    try:
      go(kind, address, port)
      went.append('arrived')
    except ConnectionRefusedError: went.append('refused')
    except OSError as e: went.append('no-route' if e.errno == errno.ENETUNREACH else repr(e))
print('went', *sorted(set(went)), flush=True)
import threading
threading.Event().wait()
)";

/// A service with a link and one without, which go to `one` and `other`.
Ran going(Nest& nest, const std::string& one, const std::string& other, const std::string& workload = "") {
  nest.write("bin/go.py", go_program);
  nest.give(R"(
leafcutter: 1
name: going
services:
  far:
    run: [bin/web, --port, "8081", --data, "${data}"]
    ports: { http: { port: 8081, protocol: http } }
    ready: { http: /health }
  linked:
    run: [python3, "${scenario}/bin/go.py", )" +
            one + R"(]
    ready: { log: went }
    needs: [far]
  alone:
    run: [python3, "${scenario}/bin/go.py", )" +
            other + R"(]
    ready: { log: went }
    needs: [far]
links: [ linked -> far ]
workload:
  - run: [/bin/true]
)" + workload);
  return nest.run();
}

std::string said(const Ran& ran, const std::string& lane) {
  const auto lines = ran.of("log", lane);
  return lines.size() == 1 ? lines[0].attrs.value("line", "") : std::to_string(lines.size()) + " lines";
}

std::set<std::string> refusals(const Ran& ran, const std::string& lane) {
  std::set<std::string> out;
  for (const auto& event : ran.of("egress.refused", lane)) {
    const auto text = event.attrs.value("transport", "") + " " + event.attrs.value("address", "") + " " +
                      std::to_string(event.attrs.value("port", 0)) + " x" + std::to_string(event.attrs.value("n", 0));
    EXPECT_TRUE(out.insert(text).second) << text << " twice";
  }
  return out;
}

using Texts = std::set<std::string>;

TEST(Egress, IsRefusedAtOnceAndBecomesAnEvent) {
  Nest nest;
  const std::string everywhere =
      R"(tcp, 192.0.2.1, "80", "1", udp, 203.0.113.5, "53", "1", tcp, "2001:db8::1", "443", "1", udp, "fd00::7", "53", "1")";
  const auto ran = going(nest, everywhere, everywhere + R"(, tcp, 8.8.8.8, "8081", "1")",
                         "  - run: [/bin/bash, -c, \"exec 3<>/dev/tcp/198.51.100.1/25\"]\n    expect: { exit: 1 }\n");
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said(ran, "linked"), "went refused");
  EXPECT_EQ(said(ran, "alone"), "went refused");
  Texts expected = {"tcp 192.0.2.1 80 x1", "udp 203.0.113.5 53 x1", "tcp 2001:db8::1 443 x1", "udp fd00::7 53 x1"};
  EXPECT_EQ(refusals(ran, "linked"), expected);
  expected.insert("tcp 8.8.8.8 8081 x1");
  EXPECT_EQ(refusals(ran, "alone"), expected);
  EXPECT_EQ(refusals(ran, "workload"), (Texts{"tcp 198.51.100.1 25 x1"}));
  EXPECT_FALSE(ran.end().contains("egress_dropped"));
  ASSERT_EQ(ran.of("settled").size(), 1u);
  for (const auto& event : ran.of("egress.refused")) EXPECT_LT(event.at, ran.of("settled")[0].at) << "told late";
}

TEST(Egress, WhatStaysInTheLeafOrSendsNothingIsNone) {
  Nest nest;
  const auto ran = going(
      nest, R"(tcp, 10.77.0.1, "8081", "1", udp, 127.0.0.1, "9", "1", tcp, "::1", "9", "1", tcp, "fd77::1", "9", "1")",
      R"(look, 192.0.2.1, "53", "1", tcp, 10.77.0.1, "8081", "1", tcp, "fd77::1", "9", "1")");
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said(ran, "linked"), "went arrived refused");
  EXPECT_EQ(said(ran, "alone"), "went no-route") << "there is no link";
  EXPECT_TRUE(ran.of("egress.refused").empty());
}

TEST(Egress, RepetitionsAreCountedAndDestinationsBounded) {
  Nest nest;
  std::string ports;
  for (int port = 1; port <= 80; ++port) ports += ", tcp, 192.0.2.1, \"" + std::to_string(port) + "\", \"1\"";
  const auto ran = going(nest, R"(udp, 192.0.2.9, "53", "20")", ports.substr(2));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said(ran, "linked"), "went refused") << "all twenty of them";
  EXPECT_EQ(said(ran, "alone"), "went refused");
  Texts counted;
  for (const int n : {1, 2, 4, 8, 16}) counted.insert("udp 192.0.2.9 53 x" + std::to_string(n));
  const auto named = refusals(ran, "linked");
  EXPECT_TRUE(named == counted || named.empty()) << "either service may be the first";
  std::set<std::string> destinations;
  for (const auto& event : ran.of("egress.refused"))
    destinations.insert(event.lane + event.attrs.value("address", "") + std::to_string(event.attrs.value("port", 0)));
  EXPECT_EQ(destinations.size(), Egress::most_destinations);
  EXPECT_EQ(ran.end().value("egress_dropped", 0), named.empty() ? 20 + 80 - 64 : 80 - 63);
}

TEST(Egress, OnlyTheBeginningOfWhatIsSentCounts) {
  std::string packet("\x45\0\0\x28\0\0\x40\0\x40\x06\0\0\x0a\x4d\0\x01\xc0\0\x02\x01", 20);
  std::string tcp("\x9c\x40\x01\xbb\0\0\0\x01\0\0\0\0\x50\x02\xff\xff\0\0\0\0", 20);
  EXPECT_EQ(destination_of(packet + tcp), (Destination{"tcp", "192.0.2.1", 443}));
  for (std::size_t size = 0; size < 40; ++size) EXPECT_FALSE(destination_of((packet + tcp).substr(0, size))) << size;
  tcp[13] = 0x10;
  EXPECT_FALSE(destination_of(packet + tcp)) << "no SYN";
  tcp[13] = 0x12;
  EXPECT_FALSE(destination_of(packet + tcp)) << "the answer to one";
  packet[9] = 17;
  EXPECT_EQ(destination_of(packet + tcp), (Destination{"udp", "192.0.2.1", 443}));
  packet[7] = 1;
  EXPECT_FALSE(destination_of(packet + tcp)) << "a later fragment";
  packet[7] = 0;
  packet[9] = 1;
  EXPECT_FALSE(destination_of(packet + tcp)) << "ICMP";
  packet[0] = '\x55';
  EXPECT_FALSE(destination_of(packet + tcp)) << "no IP";
  std::string six("\x60\0\0\0\0\x10\x2c\x40", 8);
  six += std::string(16, '\0') + std::string("\x20\x01\x0d\xb8", 4) + std::string(11, '\0') + "\x05";
  const std::string fragment("\x11\0\0\x01\0\0\0\x07", 8);  // the first of several
  EXPECT_EQ(destination_of(six + fragment + tcp), (Destination{"udp", "2001:db8::5", 443}));
  EXPECT_FALSE(destination_of(six + std::string("\x11\0\0\x08\0\0\0\x07", 8) + tcp)) << "the second";
}

}  // namespace
}  // namespace leafcutter::node::testing
