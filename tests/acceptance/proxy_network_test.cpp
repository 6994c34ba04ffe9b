// leafcutter proxy among name servers and many connections: dig between dnsmasq and its faults, name servers that are
// silent, and descriptors that are few.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "support.hpp"

namespace {

using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter_command;
using acceptance::Outcome;
using acceptance::Program;
using acceptance::records;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

sockaddr_in loopback_address(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// Free for connections and datagrams, as far as can be told.
int free_port_of_both() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto address = loopback_address(0);
    socklen_t size = sizeof address;
    const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
              udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool free = ::bind(tcp, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                      ::getsockname(tcp, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                      ::bind(udp, reinterpret_cast<sockaddr*>(&address), size) == 0;
    ::close(tcp);
    ::close(udp);
    if (free) return ntohs(address.sin_port);
  }
  ADD_FAILURE() << "no port is free for both";
  return 0;
}

class DnsThroughProxy : public testing::Test {
 protected:
  void start_resolver() {
    std::vector<std::string> words = {"dnsmasq", "--no-daemon", "--log-facility=-", "--conf-file=/dev/null",
                                      "--no-resolv", "--no-hosts", "--bind-interfaces", "--listen-address=127.0.0.1",
                                      "--port=" + std::to_string(resolver_port_),
                                      "--pid-file=", "--user=", "--local-ttl=600", "--local=/internal/",
                                      // More than a datagram holds: the resolver itself cuts that one short.
                                      "--txt-record=wide.internal," + long_text()};
    for (const auto* name : {"plain", "cut", "gone", "broken", "silent", "wrong", "aged", "late", "once"})
      words.push_back("--host-record=" + std::string(name) + ".internal,192.0.2.10");
    resolver_ = std::make_unique<Program>(words, folder_.path());
    ASSERT_TRUE(resolver_->wait_for_error_text("started", seconds(30)));
  }
  static std::string long_text() {
    std::string text;
    for (int i = 0; i < 16; ++i) text += (i == 0 ? "" : ",") + std::string(250, static_cast<char>('a' + i));
    return text;
  }

  /// The same port for both transports, as clients of name servers expect.
  void start_proxy(const std::string& udp_faults, const std::string& tcp_faults) {
    const auto proxy = [&](const std::string& transport) {
      return "  - { name: " + transport + ", protocol: " + transport +
             ", listen: \"127.0.0.1:" + std::to_string(port_) +
             "\", upstream: \"127.0.0.1:" + std::to_string(resolver_port_) + "\" }\n";
    };
    folder_.write("dns.yaml", "schema_version: 2\nseed: 4\nproxies:\n" + proxy("udp") + proxy("tcp") +
                                  "phases:\n  - name: faulty\n    proxies:\n      - proxy: udp\n        faults:\n" +
                                  udp_faults + "      - proxy: tcp\n        faults:\n" + tcp_faults);
    proxy_ = std::make_unique<Program>(
        leafcutter_command({"proxy", "dns.yaml", "--format", "json", "--journal", folder_ / "journal"}),
        folder_.path());
    ASSERT_TRUE(proxy_->wait_for_output_text("\"phase-started\"", seconds(30))) << proxy_->error_text();
  }

  std::string dig(std::vector<std::string> words) {
    std::vector<std::string> all = {"dig", "@127.0.0.1", "-p", std::to_string(port_), "+nocookie", "+tries=1"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = Program(all, folder_.path()).wait(seconds(60));
    return outcome.out + outcome.err;
  }

  Folder folder_;
  int resolver_port_ = free_port_of_both(), port_ = free_port_of_both();
  std::unique_ptr<Program> resolver_, proxy_;
};

std::string dns_line(const std::string& id, const std::string& more) {
  return "          - { type: dns, id: " + id + ", name: " + id + ".internal, " + more + " }\n";
}

TEST_F(DnsThroughProxy, DigSeesEveryFaultOverDatagramsAndConnections) {
  ASSERT_NO_FATAL_FAILURE(start_resolver());
  const auto common = dns_line("gone", "case: nx-domain") + dns_line("broken", "case: serv-fail") +
                      dns_line("silent", "case: timeout") +
                      dns_line("wrong", "case: wrong-answers, addresses: [ 198.51.100.7 ]") +
                      dns_line("aged", "case: ttl, ttl: 3") + dns_line("late", "case: delay, delay_ms: 400") +
                      dns_line("once", "case: refused, occurrences: { last: 1 }");
  // What cuts the stream into parts stands before the faults of DNS, between them and behind.
  const std::string slices = "          - { type: slice, average_bytes: 20, flow: to-client }\n",
                    slow = "          - { type: bandwidth, bytes_per_second: 200000 }\n";
  ASSERT_NO_FATAL_FAILURE(start_proxy(common + dns_line("cut", "case: truncated"), slices + common + slow));

  EXPECT_THAT(dig({"cut.internal"}),
              AllOf(HasSubstr("Truncated, retrying in TCP mode"), HasSubstr("192.0.2.10"), HasSubstr("(TCP)")));
  EXPECT_THAT(dig({"wide.internal", "TXT", "+bufsize=1232"}),
              AllOf(HasSubstr("Truncated, retrying in TCP mode"), HasSubstr(std::string(250, 'p'))))
      << "the resolver's own truncation, through slices of 20 bytes";
  for (const std::string transport : {"+notcp", "+tcp"}) {
    SCOPED_TRACE(transport);
    EXPECT_THAT(dig({"plain.internal", transport}),
                AllOf(HasSubstr("NOERROR"), HasSubstr("192.0.2.10"), Not(HasSubstr("Truncated"))))
        << "the twin";
    EXPECT_THAT(dig({"gone.internal", transport}), AllOf(HasSubstr("NXDOMAIN"), HasSubstr("SOA")));
    EXPECT_THAT(dig({"broken.internal", transport}), HasSubstr("SERVFAIL"));
    EXPECT_THAT(dig({"silent.internal", transport, "+timeout=1"}), HasSubstr("timed out"));
    EXPECT_THAT(dig({"wrong.internal", transport, "+short"}), testing::StartsWith("198.51.100.7\n"));
    EXPECT_THAT(dig({"aged.internal", transport}), AllOf(HasSubstr("\t3\tIN"), HasSubstr("192.0.2.10")));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(dig({"late.internal", transport, "+short"}), HasSubstr("192.0.2.10"));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(400));
    EXPECT_THAT(dig({"once.internal", transport}), HasSubstr("REFUSED"));
    EXPECT_THAT(dig({"once.internal", transport, "+short"}), HasSubstr("192.0.2.10"));
  }
  proxy_->signal_alone(SIGTERM);
  EXPECT_EQ(proxy_->wait(seconds(20)).exit, 0);
  std::multiset<std::string> struck;
  for (const auto& one : records(acceptance::content(folder_ / "journal"), "struck"))
    if (one["effect"] == "filter")
      struck.insert(one["link"].get<std::string>() + " " + one["fault"].get<std::string>());
  for (const std::string fault : {"gone", "broken", "silent", "wrong", "aged", "late", "once"})
    for (const std::string proxy : {"udp ", "tcp "}) EXPECT_EQ(struck.count(proxy + fault), 1U) << proxy << fault;
  EXPECT_EQ(struck.count("udp cut"), 1U);
  EXPECT_EQ(struck.size(), 15U);
}

TEST_F(DnsThroughProxy, AResolverThatIsNotThereIsSaidAndTheProxyGoesOn) {
  start_proxy(dns_line("gone", "case: nx-domain"), dns_line("gone", "case: nx-domain"));
  EXPECT_THAT(dig({"gone.internal", "+notcp"}), HasSubstr("NXDOMAIN")) << "the fault needs no resolver";
  EXPECT_THAT(dig({"plain.internal", "+notcp", "+timeout=1"}), HasSubstr("timed out"));
  EXPECT_THAT(dig({"plain.internal", "+tcp", "+timeout=2"}), Not(HasSubstr("NOERROR")));
  ASSERT_NO_FATAL_FAILURE(start_resolver());
  EXPECT_THAT(dig({"plain.internal", "+notcp"}), HasSubstr("192.0.2.10"));
  EXPECT_THAT(dig({"plain.internal", "+tcp"}), HasSubstr("192.0.2.10"));
  proxy_->signal_alone(SIGTERM);
  EXPECT_EQ(proxy_->wait(seconds(20)).exit, 0);
  EXPECT_FALSE(records(acceptance::content(folder_ / "journal"), "connect-failed").empty());
}

// Name servers that take questions and never answer: in a network of the test's own.
TEST(SilentNameServers, KeepNoOtherCallOfTheInterfaceWaiting) {
  const Folder folder;
  folder.write("resolv.conf", "nameserver 127.0.0.53\noptions timeout:4 attempts:1\n");
  folder.write("nsswitch.conf", "hosts: files dns\n");
  folder.write("script", R"(set -eu
leafcutter="$1"
ip link set lo up
mount --bind resolv.conf /etc/resolv.conf
mount --bind nsswitch.conf /etc/nsswitch.conf
socat -u UDP-RECV:53,bind=127.0.0.53 CREATE:asked &
until ss -ulnH | grep -q 127.0.0.53; do :; done
"$leafcutter" proxy --toxiproxy 127.0.0.1:8474 >started &
proxy=$!
until curl -s http://127.0.0.1:8474/version >version; do :; done
(curl -s http://127.0.0.1:8474/proxies -d '{"name": "slow", "listen": "slow.example:7001", "upstream": "127.0.0.1:1"}' >slow
 echo "the slow one is answered") &
slow=$!
until [ -s asked ]; do :; done
curl -s http://127.0.0.1:8474/proxies -d '{"name": "quick", "listen": "127.0.0.1:7000", "upstream": "slow.example:1"}' >quick
curl -s http://127.0.0.1:7000 >up || true &   # its upstream has no address yet
curl -s http://127.0.0.1:8474/proxies/quick/toxics -d '{"type": "latency"}' >toxic
curl -s -X POST http://127.0.0.1:8474/reset
curl -s -X DELETE http://127.0.0.1:8474/proxies/quick
curl -s http://127.0.0.1:8474/proxies >proxies
echo "the others are answered"
wait $slow
: >asked
(curl -s http://127.0.0.1:8474/proxies -d '{"name": "again", "listen": "other.example:7001", "upstream": "127.0.0.1:1"}' || echo "nobody answers any more") &
until [ -s asked ]; do :; done
kill -TERM $proxy
wait $proxy
echo "ended with $?"
wait $! || true
kill %1
)");
  const auto program = (acceptance::build_folder() / "leafcutter").string();
  const auto outcome = Program({"unshare", "-Urmn", "bash", "script", program}, folder.path()).wait(seconds(120));
  EXPECT_THAT(outcome.out, HasSubstr("the others are answered\nthe slow one is answered\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ended with 0\n")) << outcome.out << outcome.err;
  const auto content = [&](const std::string& file) {
    std::ifstream stream(folder / file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_THAT(content("slow"), HasSubstr("listen tcp slow.example:7001: cannot resolve"));
  EXPECT_THAT(content("quick"), HasSubstr("\"name\":\"quick\""));
  EXPECT_EQ(content("proxies"), "{}");
}

TEST(SilentNameServers, KeepNoSignalAndNoPhaseOfARunWaiting) {
  const Folder folder;
  folder.write("resolv.conf", "nameserver 127.0.0.53\noptions timeout:30 attempts:1\n");
  folder.write("nsswitch.conf", "hosts: files dns\n");
  folder.write("script", R"(set -eu
leafcutter="$1"
ip link set lo up
mount --bind resolv.conf /etc/resolv.conf
mount --bind nsswitch.conf /etc/nsswitch.conf
socat -u UDP-RECV:53,bind=127.0.0.53 CREATE:asked &
until ss -ulnH | grep -q 127.0.0.53; do :; done
written() {
  printf 'schema_version: 2\nproxies: [ { name: a, protocol: tcp, listen: "%s:7000", upstream: "127.0.0.1:1" } ]\n' "$1"
  printf 'phases: [ { name: one, duration: 2s }, { name: two } ]\n'
}
run() { "$leafcutter" proxy run.yaml --format json "$@" 2>said & proxy=$!; }

document() { written "$1" >new && mv new run.yaml; }

document slow.example
run >never
until [ -s asked ]; do :; done
kill -TERM $proxy
status=0; wait $proxy || status=$?
echo "not begun, ended with $status"

document 127.0.0.1
run --watch --journal journal >started
until grep -q '"one"' started; do :; done
: >asked
document other.example
until grep -q config-reload-failed journal; do :; done
: >asked
document third.example
until [ -s asked ]; do :; done
kill -INT $proxy
status=0; wait $proxy || status=$?
echo "ended with $status"
kill %1
)");
  const auto program = (acceptance::build_folder() / "leafcutter").string();
  const auto outcome = Program({"unshare", "-Urmn", "bash", "script", program}, folder.path()).wait(seconds(120));
  EXPECT_THAT(outcome.out, HasSubstr("not begun, ended with 0\n")) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nended with 130\n")) << outcome.out << outcome.err;
  const auto journal = acceptance::content(folder / "journal");
  const auto second = journal.find("\"two\""), failed = journal.find("config-reload-failed");
  ASSERT_NE(failed, std::string::npos) << journal;
  EXPECT_LT(second, failed) << "the phase did not wait: " << journal;
  EXPECT_THAT(journal, HasSubstr("cannot resolve \\\"other.example\\\": no name server has answered within 10 s"));
  EXPECT_EQ(records(journal, "config-reload-failed").size(), 1U) << journal;
  EXPECT_EQ(records(journal, "run-completed").size(), 1U);
  EXPECT_EQ(acceptance::content(folder / "never"), "");
}

/// Connections to a port of loopback; each sends its byte and waits for it to come back.
class ManyEchoes {
 public:
  explicit ManyEchoes(int port, std::size_t count) {
    const auto address = loopback_address(port);
    for (std::size_t i = 0; i < count; ++i) {
      fds_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const timeval patience{2, 0};
      ::setsockopt(fds_.back(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      EXPECT_EQ(::connect(fds_.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      EXPECT_EQ(::send(fds_.back(), "x", 1, MSG_NOSIGNAL), 1);
    }
  }
  ~ManyEchoes() {
    for (const int fd : fds_) ::close(fd);
  }
  std::size_t answered() {
    std::size_t count = 0;
    char byte = 0;
    for (const int fd : fds_) {
      if (::recv(fd, &byte, 1, 0) == 1)
        ++count;
      else
        break;  // the others wait, too
    }
    return count;
  }

 private:
  std::vector<int> fds_;
};

TEST(Descriptors, AreAsManyAsTheSystemAllows) {
  const Folder folder;
  const int upstream = free_port_of_both();
  Program echo({"socat", "-d", "-d",
                "TCP-LISTEN:" + std::to_string(upstream) + ",bind=127.0.0.1,fork,reuseaddr,backlog=512", "PIPE"},
               folder.path());
  ASSERT_TRUE(echo.wait_for_error_text("listening on", seconds(30)));
  folder.write("run.yaml",
               "schema_version: 2\nproxies: [ { name: l, protocol: tcp, listen: \"127.0.0.1:0\", upstream: "
               "\"127.0.0.1:" +
                   std::to_string(upstream) + "\" } ]\nphases: [ { name: only } ]\n");
  constexpr std::size_t clients = 60;  // two descriptors each
  std::vector<std::pair<std::string, bool>> limits{{"40:2048", true}};
#ifndef __SANITIZE_ADDRESS__
  // UndefinedBehaviorSanitizer opens a pipe to see whether an object's memory can be read, and takes it for a wrong
  // object where there is no descriptor left.
  limits.emplace_back("40:40", false);
#endif
  for (const auto& [limit, all] : limits) {
    SCOPED_TRACE(limit);
    auto command = leafcutter_command({"proxy", "run.yaml", "--format", "json"});
    command.insert(command.begin(), {"prlimit", "--nofile=" + limit});
    Program proxy(command, folder.path());
    ASSERT_TRUE(proxy.wait_for_output_text("\"phase-started\"", seconds(30))) << proxy.error_text();
    const auto& said = proxy.output_text();
    const auto started = Json::parse(said.substr(0, said.find('\n')));
    const std::string listen = started["endpoints"][0]["listen"];
    {
      ManyEchoes echoes(std::stoi(listen.substr(listen.rfind(':') + 1)), clients);
      EXPECT_EQ(echoes.answered() == clients, all);
    }
    proxy.signal_alone(SIGTERM);
    const auto outcome = proxy.wait(seconds(20));
    EXPECT_EQ(outcome.exit, 0);
  }
}

}  // namespace
