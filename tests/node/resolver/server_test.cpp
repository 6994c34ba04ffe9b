// The resolver on real sockets, asked by dig.
#include "node/resolver/server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <cstdio>
#include <thread>

namespace leafcutter::node::resolver {
namespace {

using testing::AllOf;
using testing::HasSubstr;

base::UniqueFd loopback_socket(int type, std::uint16_t port, std::uint16_t& bound) {
  base::UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return {};
  if (type == SOCK_STREAM && ::listen(fd.get(), 16) != 0) return {};
  socklen_t length = sizeof name;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length);
  bound = ntohs(name.sin_port);
  return fd;
}

/// A running resolver, with a plan.
class Running {
 public:
  explicit Running(std::vector<scenarios::Fault> faults = {}) {
    scenarios::Plan plan;
    plan.faults = std::move(faults);
    book_.emplace(plan, recorder_);
    book_->arm();
    ServerSockets sockets;
    // A number that is free for datagrams may be taken for streams.
    for (int attempt = 0; attempt < 100 && sockets.streams.empty(); ++attempt) {
      auto datagrams = loopback_socket(SOCK_DGRAM, 0, port);
      if (auto streams = loopback_socket(SOCK_STREAM, port, port)) {
        sockets.datagrams.push_back(std::move(datagrams));
        sockets.streams.push_back(std::move(streams));
      }
    }
    EXPECT_EQ(sockets.streams.size(), 1u);
    server_.emplace(io_, activity_, Lookups(zone_, *book_, recorder_, "shop"), std::move(sockets));
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Running() {
    io_.stop();
    thread_.join();
  }

  std::string dig(const std::string& words) const {
    const auto command = "dig @127.0.0.1 -p " + std::to_string(port) + " +tries=1 +nocookie " + words + " 2>&1";
    std::string text;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer;
    for (std::size_t n = 0; pipe != nullptr && (n = ::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      text.append(buffer.data(), n);
    if (pipe != nullptr) ::pclose(pipe);
    return text;
  }

  std::uint16_t port = 0;

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_ = boost::asio::make_work_guard(io_);
  Activity activity_;
  Recorder recorder_{[] { return std::chrono::nanoseconds(0); }, [](Event) {}};
  Zone zone_{{{"broker", {"10.77.0.1"}}}};
  std::optional<SiteBook> book_;
  std::optional<Server> server_;
  std::thread thread_;
};

TEST(ResolverServer, AnswersDigOverBothTransports) {
  const Running resolver;
  for (const std::string transport : {"+notcp ", "+tcp "}) {
    EXPECT_THAT(resolver.dig(transport + "+edns=0 broker"),
                AllOf(HasSubstr("status: NOERROR"), HasSubstr("10.77.0.1"), HasSubstr("EDNS: version: 0")));
    EXPECT_THAT(resolver.dig(transport + "broker AAAA"), AllOf(HasSubstr("ANSWER: 0"), HasSubstr("SOA")));
    EXPECT_THAT(resolver.dig(transport + "+short -x 10.77.0.1"), "broker.\n");
    EXPECT_THAT(resolver.dig(transport + "nobody"), AllOf(HasSubstr("status: NXDOMAIN"), HasSubstr("SOA")));
  }
  EXPECT_THAT(resolver.dig("+tcp +keepopen broker broker AAAA"), HasSubstr("10.77.0.1")) << "two on one connection";
}

TEST(ResolverServer, StrikesWithARetryOverTcp) {
  const Running resolver({{"dns-truncated", {"shop -> dns", "query", "broker A"}, 1, Value::object(), {}}});
  EXPECT_THAT(resolver.dig("broker"), AllOf(HasSubstr("retrying in TCP mode"), HasSubstr("10.77.0.1")));
}

TEST(ResolverServer, AnswersLateWhereItIsToAndOthersMeanwhile) {
  const Running resolver({{"dns-delay", {"shop -> dns", "query", "broker A"}, 1, {{"for", "400ms"}}, {}}});
  const auto begin = std::chrono::steady_clock::now();
  std::string late;
  std::thread waiting([&] { late = resolver.dig("+short broker"); });
  EXPECT_THAT(resolver.dig("+short -x 10.77.0.1"), "broker.\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(400));
  waiting.join();
  EXPECT_EQ(late, "10.77.0.1\n");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(400));
}

TEST(ResolverServer, ConnectionsThatSayNothingDoNotSilenceIt) {
  const Running resolver;
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 60; ++i) {
    idle.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(resolver.port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(idle.back().get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  EXPECT_EQ(resolver.dig("+tcp +short broker"), "10.77.0.1\n");
  EXPECT_EQ(resolver.dig("+notcp +short broker"), "10.77.0.1\n");
}

}  // namespace
}  // namespace leafcutter::node::resolver
