// What a scenario lets out of its leaves: it arrives on the host, and nothing else does.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "base/unique_fd.hpp"
#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

/// Greets whoever connects to a port of the host's loopback.
class HostServer {
 public:
  HostServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* address = reinterpret_cast<sockaddr*>(&name);
    if (::bind(listener_.get(), address, size) != 0 || ::listen(listener_.get(), 64) != 0 ||
        ::getsockname(listener_.get(), address, &size) != 0)
      throw std::runtime_error("no server on the loopback");
    port_ = ntohs(name.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HostServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  HostServer(const HostServer&) = delete;
  HostServer& operator=(const HostServer&) = delete;

  std::string port() const { return std::to_string(port_); }
  int accepted() const { return accepted_; }

 private:
  void serve() {
    for (;;) {
      const base::UniqueFd caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller) return;
      ++accepted_;
      static_cast<void>(::send(caller.get(), "outside", 7, MSG_NOSIGNAL));
    }
  }
  base::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

constexpr const char* reach_program = R"(
import errno, socket, sys
went = []
for host, port in zip(*[iter(sys.argv[1:])] * 2):
  try:
    s = socket.create_connection((host, int(port)), 5)
    went.append(s.recv(100).decode() or 'nothing')
  except socket.gaierror: went.append('no-name')
  except OSError as e: went.append(errno.errorcode.get(e.errno, repr(e)))
print('went', *went, flush=True)
)";

/// `ask` and `other` reach for what their arguments say, then the workload does.
Ran reach_out(Nest& nest, const std::string& egress, const std::string& ask, const std::string& other = "",
              const std::string& workload = "", const scenarios::Plan& plan = {}) {
  nest.write("bin/reach.py", reach_program);
  const auto service = [](const std::string& name, const std::string& arguments) {
    return "  " + name + ":\n    run: [/bin/sh, -c, 'python3 ${scenario}/bin/reach.py " + arguments +
           "; exec sleep 1000']\n    ready: { log: went }\n";
  };
  nest.give("leafcutter: 1\nname: out\nservices:\n" + service("ask", ask) + service("other", other) + "egress:\n" +
            egress + "workload:\n  - run: [python3, \"${scenario}/bin/reach.py\"" + workload + "]\n");
  return nest.run(plan);
}

std::set<std::string> refusals(const Ran& ran) {
  std::set<std::string> out;
  for (const auto& event : ran.of("egress.refused"))
    out.insert(event.lane + " " + event.attrs.value("transport", "") + " " + event.attrs.value("address", "") + " " +
               std::to_string(event.attrs.value("port", 0)));
  return out;
}

using Texts = std::set<std::string>;

TEST(WayOut, WhatIsAllowedArrivesAndNothingElseDoes) {
  Nest nest;
  const HostServer host;
  const auto at = ", at: \"127.0.0.1:" + host.port() + "\" }\n";
  const auto egress = "  - { from: ask, to: API.example.org, port: 443" + at +
                      "  - { from: ask, to: 192.0.2.7, port: 80" + at +
                      "  - { from: ask, to: \"2001:db8::7\", port: 80" + at +
                      "  - { from: ask, to: localhost, port: " + host.port() + " }\n";
  const auto ran = reach_out(nest, egress,
                             "api.example.org 443 192.0.2.7 80 2001:db8::7 80 localhost " + host.port() +
                                 " api.example.org 80 192.0.2.7 443 192.0.2.8 80 www.example.org 443",
                             "api.example.org 443 192.0.2.7 80 localhost " + host.port());
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(went(ran, "ask"), "outside outside outside outside ECONNREFUSED ECONNREFUSED ECONNREFUSED no-name");
  EXPECT_EQ(went(ran, "other"), "ECONNREFUSED ECONNREFUSED ECONNREFUSED");
  EXPECT_EQ(host.accepted(), 4);
  EXPECT_EQ(refusals(ran), (Texts{"ask tcp api.example.org 80", "ask tcp 192.0.2.7 443", "ask tcp 192.0.2.8 80",
                                  "other tcp api.example.org 443", "other tcp 192.0.2.7 80"}));
  for (const auto* lane : {"ask -> api.example.org:443", "ask -> 192.0.2.7:80", "ask -> [2001:db8::7]:80"}) {
    ASSERT_EQ(ran.of("connect", lane).size(), 1u) << lane;
    EXPECT_EQ(ran.of("connect", lane)[0].attrs["accepted"], true);
    ASSERT_EQ(ran.of("close", lane).size(), 1u) << lane;
    EXPECT_EQ(ran.of("close", lane)[0].attrs["down_bytes"], 7);
  }
}

TEST(WayOut, IsOneForTheWorkloadToo) {
  Nest nest;
  const HostServer host;
  const auto ran = reach_out(
      nest, "  - { from: [workload, other], to: api.example.org, port: 443, at: \"localhost:" + host.port() + "\" }\n",
      "api.example.org 443", "api.example.org 443", ", api.example.org, \"443\", 192.0.2.7, \"80\"");
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran, "ask"), "ECONNREFUSED");
  EXPECT_EQ(went(ran, "other"), "outside");
  EXPECT_EQ(host.accepted(), 2);
  EXPECT_EQ(ran.of("connect", "workload -> api.example.org:443").size(), 1u);
  EXPECT_EQ(refusals(ran), (Texts{"ask tcp api.example.org 443", "workload tcp 192.0.2.7 80"}));
}

TEST(WayOut, NamesAreThoseOfTheLeafsResolverToo) {
  Nest nest;
  const HostServer host;
  scenarios::Plan plan;
  plan.faults.push_back({"dns-nx-domain", {"ask -> dns", "query", "api.example.org A"}, 2, Value::object()});
  const auto ran =
      reach_out(nest, "  - { from: ask, to: api.example.org, port: 443, at: \"127.0.0.1:" + host.port() + "\" }\n",
                "api.example.org 443 api.example.org 443 www.example.org 443 api.example.org 443", "", "", plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(went(ran, "ask"), "outside no-name no-name outside");
  EXPECT_EQ(ran.of("fault.fired").size(), 1u);
}

TEST(WayOut, ANameThatTheHostDoesNotKnowEndsTheLeafBeforeItBegins) {
  Nest nest;
  const auto ran = reach_out(nest, "  - { from: ask, to: nowhere.invalid, port: 443 }\n", "nowhere.invalid 443");
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "infra");
  EXPECT_NE(ran.end().value("detail", "").find("way out ask -> nowhere.invalid:443: look up nowhere.invalid: "),
            std::string::npos);
  EXPECT_TRUE(ran.of("start").empty());
}

TEST(WayOut, LeavesNoProcessBehind) {
  Nest nest;
  const HostServer host;
  const auto before = processes_with(NURSERY_PROGRAM).size();
  const auto execution = [&] {
    nest.write("bin/reach.py", reach_program);
    nest.give(
        "leafcutter: 1\nname: out\nservices:\n  ask:\n    run: [/bin/sleep, \"1000\"]\negress:\n"
        "  - { from: ask, to: localhost, port: " +
        host.port() + " }\nworkload:\n  - run: [/bin/sleep, \"1000\"]\n");
    return nest.start(nest.job());
  }();
  ASSERT_TRUE(nest.wait_for(execution, "start"));
  EXPECT_GE(processes_with(NURSERY_PROGRAM).size(), before + 1);
  nest.launcher().kill(execution);
  nest.wait(execution);
  EXPECT_TRUE(eventually([&] { return processes_with(NURSERY_PROGRAM).size() == before; }, std::chrono::seconds(10)));
}

}  // namespace
}  // namespace leafcutter::node::testing
