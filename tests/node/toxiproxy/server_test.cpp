// Who may use the interface, and what a server must bear: the token, and bounds of size, time and number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "http/token.hpp"
#include "rig.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using proxy::Clock;
using proxy::slowness;
using testing::HasSubstr;
using testing::StartsWith;

const std::string good_token = "0123456789abcdef";

std::string started_error(const std::string& address, const std::string& token) {
  ServiceOptions options;
  options.address = address;
  options.token = token;
  Notes notes;
  const auto started = Service::start(std::move(options), notes);
  return started ? "" : started.error().text();
}

TEST(Access, LoopbackIsWhatItSays) {
  for (const auto* address : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1"})
    EXPECT_TRUE(is_loopback(address)) << address;
  for (const auto* address :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "128.0.0.1:1", "example.org:1", "localhost.evil:1", "[::2]:1"})
    EXPECT_FALSE(is_loopback(address)) << address;
}

TEST(Access, AnotherAddressNeedsAToken) {
  EXPECT_EQ(started_error("127.0.0.1:0", ""), "");
  EXPECT_THAT(started_error("0.0.0.0:0", ""), StartsWith("--toxiproxy: whoever reaches 0.0.0.0:0 could"));
  EXPECT_THAT(started_error("0.0.0.0:0", ""), HasSubstr(token_variable));
  EXPECT_EQ(started_error("0.0.0.0:0", good_token), "");
  EXPECT_THAT(started_error("nonsense", ""), StartsWith("--toxiproxy: \"nonsense\" has no port"));
}

TEST(Access, ATokenIsAskedForByEveryRequest) {
  ServiceOptions options;
  options.token = good_token;
  const ApiRig rig(std::move(options));
  for (const auto* target : {"/proxies", "/version", "/metrics", "/nothing"}) {
    const auto none = rig.call("GET", target);
    EXPECT_EQ(none.status, 401) << target;
    EXPECT_EQ(none.header("www-authenticate"), "Bearer");
    EXPECT_THAT(none.body, HasSubstr("\"status\":401"));
  }
  for (const auto* wrong : {"Bearer 0123456789abcdee", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Bearer ",
                            "Bearer", "0123456789abcdef", "Basic 0123456789abcdef"})
    EXPECT_EQ(rig.call("GET", "/proxies", "", {std::string("Authorization: ") + wrong}).status, 401) << wrong;
  EXPECT_EQ(rig.call("GET", "/proxies", "", {"Authorization: Bearer " + good_token}).status, 200);
  EXPECT_EQ(rig.call("GET", "/proxies", "", {"authorization: bearer  " + good_token}).status, 200);
}

TEST(Access, TokensComeFromAFileOrTheEnvironment) {
  const auto file = std::filesystem::path(testing::TempDir()) / "toxiproxy-token";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write(good_token + "\nsecond line\n");
  EXPECT_EQ(*http::read_token(file.string(), token_variable), good_token);
  write("short\n");
  EXPECT_THAT(http::read_token(file.string(), token_variable).error().message,
              HasSubstr("has 5 characters; 16 or more would do"));
  write("a token with spaces in it");
  EXPECT_THAT(http::read_token(file.string(), token_variable).error().message, HasSubstr("a header cannot carry"));
  std::filesystem::remove(file);
  EXPECT_FALSE(http::read_token(file.string(), token_variable));
  EXPECT_EQ(*http::read_token("", token_variable), "");
  ::setenv(token_variable, good_token.c_str(), 1);
  EXPECT_EQ(*http::read_token("", token_variable), good_token);
  ::setenv(token_variable, "short", 1);
  EXPECT_THAT(http::read_token("", token_variable).error().message, HasSubstr(token_variable));
  ::unsetenv(token_variable);
}

// --- HTTP ---

const std::string get_version = "GET /version HTTP/1.1\r\nHost: x\r\n";

TEST(HttpServer, KeepsAConnectionForTheNextRequest) {
  const ApiRig rig;
  auto peer = Peer::dial(rig.address());
  // The second one does not wait for the first one's reply.
  peer.send(get_version + "\r\n" + get_version + "Connection: close\r\n\r\n");
  const auto both = peer.receive_all();
  const auto first = both.find("{\"version\"");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(both.find("{\"version\"", first + 1), std::string::npos) << both;
  EXPECT_EQ(peer.ending(), "end");
}

TEST(HttpServer, ReadsChunkedBodiesAndContinues) {
  const ApiRig rig;
  const std::string head = "POST /proxies HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  const std::string body = R"({"name":"db","upstream":"a:1","enabled":false})";
  char size[8];
  std::snprintf(size, sizeof size, "%zx", body.size());
  EXPECT_EQ(
      talk(rig.address(), head + "Transfer-Encoding: chunked\r\n\r\n" + size + "\r\n" + body + "\r\n0\r\n\r\n").status,
      201);
  auto peer = Peer::dial(rig.address());
  peer.send(
      "DELETE /proxies/db HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: "
      "2\r\n\r\n");
  EXPECT_EQ(peer.receive(25), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("{}");
  EXPECT_THAT(peer.receive_all(), StartsWith("HTTP/1.1 204 "));
}

TEST(HttpServer, RefusesWhatIsTooLargeOrNoHttp) {
  const ApiRig rig;
  const auto post = [&](const std::string& more) {
    return talk(rig.address(), "POST /populate HTTP/1.1\r\nHost: x\r\n" + more);
  };
  EXPECT_EQ(post("Content-Length: 1048577\r\n\r\n").status, 413);
  EXPECT_EQ(post("Content-Length: 99999999999999999999\r\n\r\n").status, 400);
  EXPECT_EQ(post("X: " + std::string(17 << 10, 'x') + "\r\n\r\n").status, 431);
  EXPECT_EQ(talk(rig.address(), "what is this\r\n\r\n").status, 400);
  EXPECT_EQ(talk(rig.address(), std::string("\0\1\2\r\n\r\n", 7)).status, 400);
  EXPECT_EQ(rig.call("GET", "/version").status, 200);
}

TEST(HttpServer, BodiesAndHeadersHaveTheBoundsThatAreAskedFor) {
  ServiceOptions options;
  options.server.body_bytes = 100;
  options.server.header_bytes = 500;
  const ApiRig rig(std::move(options));
  EXPECT_EQ(rig.call("POST", "/reset", std::string(100, ' ')).status, 204);
  EXPECT_EQ(rig.call("POST", "/reset", std::string(101, ' ')).status, 413);
  EXPECT_EQ(rig.call("GET", "/version", "", {"X: " + std::string(300, 'x')}).status, 200);
  EXPECT_EQ(rig.call("GET", "/version", "", {"X: " + std::string(600, 'x')}).status, 431);
}

TEST(HttpServer, DeepNestingIsRefused) {
  const ApiRig rig;
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const auto& body : {deep, R"({"name":"a","upstream":"b:1","x":)" + deep + "}"}) {
    const auto reply = rig.call("POST", "/proxies", body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("nested deeper than 16 levels"));
  }
}

TEST(HttpServer, AHeadHasNoBody) {
  const ApiRig rig;
  auto peer = Peer::dial(rig.address());
  peer.send("HEAD /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto all = peer.receive_all();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(all.substr(all.find("\r\n\r\n")), "\r\n\r\n");
}

TEST(HttpServer, ARequestThatDoesNotComeIsGivenUp) {
  ServiceOptions options;
  options.server.read_time = 150ms;
  options.server.idle_time = 300ms;
  const ApiRig rig(std::move(options));
  for (const auto& part : {std::string(), std::string("GET /vers"), get_version + "Content-Length: 5\r\n\r\nab"}) {
    auto peer = Peer::dial(rig.address());
    peer.send(part);
    const auto begin = Clock::now();
    EXPECT_EQ(peer.receive_all(), "");
    EXPECT_EQ(peer.ending() == "end" || peer.ending() == "ECONNRESET", true) << peer.ending();
    EXPECT_LT(Clock::now() - begin, 2s * slowness);
  }
  auto idle = Peer::dial(rig.address());
  idle.send(get_version + "\r\n");
  const auto begin = Clock::now();
  EXPECT_THAT(idle.receive_all(), HasSubstr("2.12.0"));
  EXPECT_GE(Clock::now() - begin, 280ms) << "it may wait for its next request";
  EXPECT_LT(Clock::now() - begin, 3s * slowness);
}

TEST(HttpServer, TheOneThatIsIdleLongestMakesRoom) {
  ServiceOptions options;
  options.server.connections = 2;
  const ApiRig rig(std::move(options));
  auto a = Peer::dial(rig.address()), b = Peer::dial(rig.address());
  for (auto* peer : {&a, &b}) {
    peer->send(get_version + "\r\n");
    EXPECT_THAT(peer->receive(12), "HTTP/1.1 200");
  }
  EXPECT_EQ(rig.call("GET", "/version").status, 200);
  a.receive_all();
  EXPECT_THAT(a.ending(), testing::AnyOf("end", "ECONNRESET"));
  b.send(get_version + "Connection: close\r\n\r\n");
  EXPECT_THAT(b.receive_all(), HasSubstr("Connection: close")) << "the later one is still there";
}

TEST(HttpServer, WithEveryPlaceBusyANewOneWaits) {
  ServiceOptions options;
  options.server.connections = 2;
  options.server.read_time = 400ms;
  const ApiRig rig(std::move(options));
  std::vector<Peer> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(Peer::dial(rig.address()));
    busy.back().send(get_version + "Content-Length: 5\r\n\r\n");
  }
  EXPECT_EQ(rig.call("GET", "/version").status, 200) << "when those that never say their body were given up";
}

/// Name servers that are silent about "slow.example" until told.
class SilentServers {
 public:
  proxy::Resolver::Lookup lookup() {
    return [this, told = told_](const proxy::HostPort& host) -> proxy::Resolver::Addresses {
      ++asked;
      if (host.host == "slow.example") told.wait();
      if (host.host == "none.example") return base::Error{base::ErrorCode::io, "cannot resolve \"none.example\": gone"};
      return proxy::literal_address({"127.0.0.1", host.port});
    };
  }
  void answer() { tell_.set_value(); }
  std::atomic<int> asked{0};

 private:
  std::promise<void> tell_;
  std::shared_future<void> told_{tell_.get_future()};
};

TEST(HttpServer, ANameThatIsSlowKeepsNoOtherCallWaiting) {
  SilentServers names;
  ServiceOptions options;
  options.lookup = names.lookup();
  const ApiRig rig(std::move(options));
  Reply slow;
  std::thread waiting(
      [&] { slow = rig.call("POST", "/proxies", proxy_json("slow", "slow.example:0", "127.0.0.1:1")); });
  EXPECT_TRUE(eventually([&] { return names.asked == 1; }));
  EXPECT_EQ(rig.call("GET", "/version").status, 200);
  EXPECT_EQ(rig.call("POST", "/proxies", proxy_json("quick", "quick.example:0", "127.0.0.1:1")).status, 201);
  EXPECT_EQ(rig.call("POST", "/proxies/quick/toxics", R"({"type": "latency"})").status, 200);
  EXPECT_EQ(rig.call("POST", "/reset").status, 204);
  EXPECT_THAT(rig.call("GET", "/proxies").body, testing::Not(HasSubstr("slow")));
  const auto none = rig.call("POST", "/populate", "[" + proxy_json("none", "none.example:0", "127.0.0.1:1") + "]");
  EXPECT_EQ(none.status, 500);
  EXPECT_THAT(none.body, HasSubstr("listen tcp none.example:0: cannot resolve"));
  names.answer();
  waiting.join();
  EXPECT_EQ(slow.status, 201) << slow.body;
  EXPECT_THAT(slow.json()["listen"].get<std::string>(), StartsWith("127.0.0.1:"));
}

TEST(HttpServer, ANameThatNobodyAnswersForIsGivenUp) {
  SilentServers names;
  ServiceOptions options;
  options.lookup = names.lookup();
  options.server.prepare_time = 200ms;
  {
    const ApiRig rig(std::move(options));
    const auto reply = rig.call("POST", "/proxies", proxy_json("slow", "slow.example:0", "127.0.0.1:1"));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(reply.json()["error"],
              "listen tcp slow.example:0: cannot resolve \"slow.example\": no name server has answered in time");
    EXPECT_THAT(rig.call("GET", "/proxies").body, testing::Not(HasSubstr("slow")));
    // A proxy that has not listened yet asks when it is to, and only then.
    const auto before = names.asked.load();
    EXPECT_EQ(
        rig.call("POST", "/proxies", proxy_json("off", "quick.example:0", "127.0.0.1:1", R"("enabled": false)")).status,
        201);
    rig.expect(200, "POST", "/proxies/off", R"({"enabled": true})");
    EXPECT_GT(names.asked, before);
  }
  names.answer();  // whoever still looks it up has only the lookup itself
}

TEST(HttpServer, WithoutTheTokenNobodysNamesAreLookedUp) {
  SilentServers names;
  ServiceOptions options;
  options.lookup = names.lookup();
  options.token = good_token;
  const ApiRig rig(std::move(options));
  EXPECT_EQ(rig.call("POST", "/proxies", proxy_json("a", "quick.example:0", "127.0.0.1:1")).status, 401);
  EXPECT_EQ(names.asked, 0);
  EXPECT_EQ(rig.call("POST", "/proxies", proxy_json("a", "quick.example:0", "127.0.0.1:1"),
                     {"Authorization: Bearer " + good_token})
                .status,
            201);
  EXPECT_EQ(names.asked, 1);
}

TEST(HttpServer, APortThatIsTakenIsSaid) {
  const ApiRig rig;
  EXPECT_THAT(started_error(rig.address(), ""), HasSubstr("listen on " + rig.address() + ": Address already in use"));
}

TEST(HttpServer, ABadConfigurationStartsNothing) {
  for (const auto& [config, message] : std::vector<std::pair<std::string, std::string>>{
           {"7", "an array of proxies would do"},
           {R"({"name":"a","upstream":"b:1"})", "proxies[0]"},
           {R"([{"name":"a"}])", "missing required field: upstream at proxy 1"},
           {R"([{"name":"a","upstream":"b:1","toxics":[{"type":"lag"}]}])",
            "invalid toxic type (toxics[0]) at proxy 1"}}) {
    ServiceOptions options;
    options.address = "127.0.0.1:0";
    options.config = config;
    Notes notes;
    const auto started = Service::start(std::move(options), notes);
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace leafcutter::node::toxiproxy
