// A real client (dig) asks a real resolver (dnsmasq) through the engine, over UDP and TCP: every case, EDNS, the retry
// over TCP after truncation, and what the faults do not select.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "../proxy/loopback.hpp"
#include "a_fault.hpp"
#include "node/dns_faults/dns_fault.hpp"
#include "node/proxy/socket_address.hpp"
#include "protocols/dns.hpp"
#include "protocols/dns_frames.hpp"

extern char** environ;

namespace leafcutter::node::dns_faults {
namespace {

using namespace std::chrono_literals;
using proxy::Clock;
using proxy::EventKind;
using proxy::Peer;
using proxy::Rig;
using proxy::Transport;
using proxy::UdpPeer;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

pid_t start_program(const std::vector<std::string>& words, int output) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nobody behind
    ::dup2(output, 1);
    ::dup2(output, 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

/// All that it wrote, and its exit status at the end: "...\n[0]".
std::string output_of(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe2 failed";
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  const pid_t child = start_program(words, write_end.get());
  write_end.reset();
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto count = ::read(read_end.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return text + "[" + std::to_string(WEXITSTATUS(status)) + "]";
}

std::string dig(const std::string& server, std::vector<std::string> words) {
  const auto colon = server.rfind(':');
  std::vector<std::string> all = {"dig", "@" + server.substr(0, colon), "-p", server.substr(colon + 1), "+nocookie"};
  if (std::none_of(words.begin(), words.end(), [](const auto& word) { return word.starts_with("+tries="); }))
    all.push_back("+tries=1");
  all.insert(all.end(), words.begin(), words.end());
  return output_of(all);
}

/// dnsmasq on a free port of loopback, knowing a handful of names. As an ordinary process; ends with the test.
class Dnsmasq {
 public:
  Dnsmasq() {
    // A port may be taken between looking and using; dnsmasq then ends, and the next one is tried.
    for (int attempt = 0; attempt < 20; ++attempt) {
      port_ = proxy::dead_port();
      if (started()) return;
      stop();
    }
    ADD_FAILURE() << "dnsmasq (package dnsmasq-base) does not answer";
  }
  ~Dnsmasq() { stop(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  bool started() {
    const base::UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto own = std::to_string(::getuid());
    std::vector<std::string> words = {"dnsmasq",
                                      "--no-daemon",
                                      "--conf-file=/dev/null",
                                      "--no-resolv",
                                      "--no-hosts",
                                      "--bind-interfaces",
                                      "--listen-address=127.0.0.1",
                                      "--port=" + std::to_string(port_),
                                      "--pid-file=",
                                      "--user=",
                                      "--local-ttl=600",
                                      "--local=/internal/",
                                      "--host-record=db.internal,192.0.2.10,2001:db8::10",
                                      "--host-record=web.internal,192.0.2.20",
                                      "--txt-record=big.internal," + std::string(250, 'x') + "," +
                                          std::string(250, 'y') + "," + std::string(250, 'z'),
                                      "--txt-record=wide.internal," + long_text()};
    pid_ = start_program(words, null.get());
    return proxy::eventually([&] {
             if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
               pid_ = -1;
               return true;
             }
             Peer peer;
             return Peer::try_dial(address(), peer) == 0;
           }) &&
           pid_ > 0;
  }
  static std::string long_text() {
    std::string text;
    for (int i = 0; i < 8; ++i) text += (i == 0 ? "" : ",") + std::string(250, static_cast<char>('a' + i));
    return text;
  }
  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

/// One resolver, and links to it on one port for both transports, as clients expect.
class Dig : public testing::Test {
 protected:
  void SetUp() override {
    // A number that is free for datagrams may be taken for connections.
    std::string why;
    for (int attempt = 0; attempt < 100; ++attempt) {
      udp_ = rig_.udp_link("udp", resolver_.address());
      proxy::LinkConfig tcp;
      tcp.name = "tcp";
      tcp.listen = udp_;
      tcp.upstream = resolver_.address();
      const auto added = rig_.engine->add_link(std::move(tcp));
      if (added) return;
      why = added.error().text();
      ASSERT_TRUE(rig_.engine->remove_link("udp"));
    }
    FAIL() << why;
  }

  void strike(const DnsFault& fault, bool on_udp = true, bool on_tcp = true) {
    const auto set = [&](const char* link, Transport transport) {
      const auto made = dns_fault(fault, transport);
      ASSERT_TRUE(made) << made.error().text();
      rig_.set(link, {*made});
    };
    if (on_udp) set("udp", Transport::udp);
    if (on_tcp) set("tcp", Transport::tcp);
  }

  /// Over both transports, the same is seen.
  template <class Check>
  void both(std::vector<std::string> words, Check check) {
    for (const bool tcp : {false, true}) {
      SCOPED_TRACE(tcp ? "tcp" : "udp");
      auto all = words;
      if (tcp) all.push_back("+tcp");
      check(dig(udp_, all));
    }
  }

  std::vector<std::string> struck() {
    std::vector<std::string> details;
    for (const auto& one : rig_.events(EventKind::struck)) details.push_back(one.link + " " + one.detail);
    return details;
  }

  Dnsmasq resolver_;
  Rig rig_;
  std::string udp_;
};

TEST_F(Dig, WithoutAFaultTheResolverAnswers) {
  both({"db.internal", "+edns=0"}, [](const std::string& said) {
    EXPECT_THAT(said, AllOf(HasSubstr("status: NOERROR"), HasSubstr("192.0.2.10"), HasSubstr("600"),
                            HasSubstr("EDNS: version: 0"), HasSubstr("[0]")));
  });
}

TEST_F(Dig, FailuresHaveTheirCodesAndKeepEdns) {
  const std::pair<DnsCase, const char*> cases[] = {{DnsCase::refused, "REFUSED"},
                                                   {DnsCase::serv_fail, "SERVFAIL"},
                                                   {DnsCase::nx_domain, "NXDOMAIN"},
                                                   {DnsCase::empty_answer, "NOERROR"}};
  for (const auto& [dns_case, status] : cases) {
    SCOPED_TRACE(status);
    strike(fault_of(dns_case));
    const bool negative = dns_case == DnsCase::nx_domain || dns_case == DnsCase::empty_answer;
    both({"db.internal", "+edns=0", "+comments"}, [&](const std::string& said) {
      EXPECT_THAT(said, AllOf(HasSubstr("status: " + std::string(status)), HasSubstr("ANSWER: 0"),
                              HasSubstr("EDNS: version: 0"), Not(HasSubstr("Warning"))));
      EXPECT_EQ(said.find("SOA") != std::string::npos, negative);
      EXPECT_THAT(said, Not(HasSubstr("192.0.2.10")));
    });
    both({"db.internal", "+noedns"}, [&](const std::string& said) {
      EXPECT_THAT(said, AllOf(HasSubstr("status: " + std::string(status)), Not(HasSubstr("EDNS"))));
    });
  }
  EXPECT_THAT(struck(), SizeIs(16));
  EXPECT_THAT(rig_.events(EventKind::let_through), IsEmpty());
}

TEST_F(Dig, ATimeoutIsSilence) {
  strike(fault_of(DnsCase::timeout));
  both({"db.internal", "+timeout=1"},
       [](const std::string& said) { EXPECT_THAT(said, AllOf(HasSubstr("timed out"), HasSubstr("[9]"))); });
  EXPECT_THAT(struck(),
              testing::ElementsAre("udp timeout: db.internal A, query 1", "tcp timeout: db.internal A, query 1"));
}

TEST_F(Dig, ADelayIsWaitedForAndNothingElseChanges) {
  auto fault = fault_of(DnsCase::delay);
  fault.delay = proxy::FixedTime{300ms};
  strike(fault);
  both({"db.internal", "+short"}, [](const std::string& said) { EXPECT_EQ(said, "192.0.2.10\n[0]"); });
  for (const auto& one : rig_.await(EventKind::struck, 2)) EXPECT_EQ(one.delay, 300ms);
  const auto begin = Clock::now();
  EXPECT_EQ(dig(udp_, {"db.internal", "+short"}), "192.0.2.10\n[0]");
  EXPECT_GE(Clock::now() - begin, 300ms);
  // Every case may come late.
  fault = fault_of(DnsCase::refused);
  fault.delay = proxy::FixedTime{250ms};
  strike(fault);
  for (const auto* transport : {"+notcp", "+tcp"}) {
    const auto sent = Clock::now();
    EXPECT_THAT(dig(udp_, {"db.internal", transport}), HasSubstr("REFUSED"));
    EXPECT_GE(Clock::now() - sent, 250ms);
  }
  strike(fault_of(DnsCase::refused, "web.internal"));
  const auto before = struck();
  EXPECT_EQ(dig(udp_, {"db.internal", "+short"}), "192.0.2.10\n[0]");
  EXPECT_EQ(struck(), before) << "the twin";
}

TEST_F(Dig, TruncationSendsItToTcpWhichAnswers) {
  for (const bool on_reply : {false, true}) {
    auto fault = fault_of(DnsCase::truncated);
    fault.on_reply = on_reply;
    strike(fault, true, false);
    const auto before = rig_.stats("tcp").accepted;
    EXPECT_THAT(dig(udp_, {"db.internal", "+edns=0"}),
                AllOf(HasSubstr("Truncated, retrying in TCP mode"), HasSubstr("192.0.2.10"), HasSubstr("(TCP)")));
    EXPECT_EQ(rig_.stats("tcp").accepted, before + 1);
    EXPECT_THAT(dig(udp_, {"db.internal", "+edns=0", "+ignore"}),
                AllOf(HasSubstr(" tc "), HasSubstr("ANSWER: 0"), HasSubstr("EDNS: version: 0")));
  }
  // The twin: what is not asked for again over TCP was not truncated.
  strike(fault_of(DnsCase::truncated, "web.internal"), true, false);
  EXPECT_THAT(dig(udp_, {"db.internal"}), AllOf(Not(HasSubstr("Truncated")), HasSubstr("(UDP)")));
}

TEST_F(Dig, TheRetryOverTcpCanBeStruckToo) {
  strike(fault_of(DnsCase::truncated), true, false);
  strike(fault_of(DnsCase::serv_fail), false, true);
  EXPECT_THAT(dig(udp_, {"db.internal"}), AllOf(HasSubstr("Truncated"), HasSubstr("SERVFAIL")));
}

TEST_F(Dig, WrongAddresses) {
  auto fault = fault_of(DnsCase::wrong_answers);
  fault.addresses = {"198.51.100.1", "198.51.100.2", "2001:db8::bad"};
  fault.ttl = 77;
  strike(fault);
  both({"db.internal", "A"}, [](const std::string& said) {
    EXPECT_THAT(said, AllOf(HasSubstr("198.51.100.1"), HasSubstr("198.51.100.2"), HasSubstr("\t77\t"),
                            Not(HasSubstr("192.0.2.10")), Not(HasSubstr("2001:db8::bad"))));
  });
  both({"db.internal", "AAAA", "+short"}, [](const std::string& said) { EXPECT_EQ(said, "2001:db8::bad\n[0]"); });
  both({"db.internal", "TXT"}, [](const std::string& said) { EXPECT_THAT(said, HasSubstr("ANSWER: 0")); });
  fault.on_reply = true;
  strike(fault);
  both({"db.internal", "A"}, [](const std::string& said) {
    EXPECT_THAT(said, AllOf(HasSubstr("198.51.100.1"), HasSubstr("\t600\t"), Not(HasSubstr("198.51.100.2"))));
  });
  strike(fault_of(DnsCase::random_address));
  both({"db.internal", "A", "+short"}, [](const std::string& said) {
    EXPECT_TRUE(said.starts_with("198.18.") || said.starts_with("198.19.")) << said;
  });
  both({"db.internal", "AAAA", "+short"},
       [](const std::string& said) { EXPECT_TRUE(said.starts_with("2001:db8:")) << said; });
}

TEST_F(Dig, TheTtlOfRealAnswersIsChanged) {
  auto fault = fault_of(DnsCase::ttl, "db.internal");
  fault.ttl = 1;
  strike(fault);
  both({"db.internal", "+noall", "+answer"},
       [](const std::string& said) { EXPECT_THAT(said, AllOf(HasSubstr("\t1\t"), HasSubstr("192.0.2.10"))); });
  both({"web.internal", "+noall", "+answer"}, [](const std::string& said) { EXPECT_THAT(said, HasSubstr("\t600\t")); });
}

TEST_F(Dig, AWrongIdIsNotTaken) {
  strike(fault_of(DnsCase::wrong_id));
  both({"db.internal", "+timeout=1"}, [](const std::string& said) {
    EXPECT_THAT(said, AllOf(HasSubstr("ID mismatch"), Not(HasSubstr("192.0.2.10"))));
  });
}

/// The answer's bytes to one query, over either transport, without dig between.
std::string asked(const std::string& address, const std::string& query, bool tcp) {
  if (!tcp) {
    UdpPeer client;
    client.send_to(address, query);
    return client.receive(2s);
  }
  auto client = Peer::dial(address);
  client.send(*protocols::dns_frame(query));
  const auto length = client.receive(2);
  if (length.size() < 2) return "";
  return client.receive(static_cast<std::size_t>(static_cast<unsigned char>(length[0])) << 8 |
                        static_cast<unsigned char>(length[1]));
}

std::string query(const std::string& name, std::uint16_t type, std::uint16_t id = 4711) {
  protocols::DnsMessage message;
  message.id = id;
  message.recursion_desired = true;
  message.questions = {{*protocols::DnsName::from_text(name), type, 1}};
  protocols::DnsEdns edns;
  edns.udp_payload = 4096;
  message.additional = {*to_record(edns)};
  return *encode_dns(message);
}

TEST_F(Dig, WhatIsNotSelectedIsByteForByteTheResolvers) {
  for (const auto dns_case : every_dns_case) {
    SCOPED_TRACE(std::string(name_of(dns_case)));
    auto fault = fault_of(dns_case, "db.internal", {"A"});
    if (dns_case == DnsCase::delay) fault.delay = proxy::FixedTime{1h};
    if (dns_case == DnsCase::wrong_answers) fault.addresses = {"198.51.100.1"};
    const bool tcp_too = dns_case != DnsCase::truncated;
    auto other_occurrence = fault, never = fault;
    other_occurrence.occurrences = {2, 2, 1};
    never.probability = 0;
    const auto same = [&](const DnsFault& one, const std::string& message) {
      strike(one, true, tcp_too);
      for (const bool tcp : {false, true}) {
        const auto direct = asked(resolver_.address(), message, tcp);
        EXPECT_THAT(direct, Not(IsEmpty()));
        EXPECT_EQ(asked(udp_, message, tcp), direct);
      }
    };
    same(fault, query("web.internal", protocols::dns_type::a));
    same(fault, query("db.internal", protocols::dns_type::aaaa));
    same(other_occurrence, query("db.internal", protocols::dns_type::a));
    same(never, query("db.internal", protocols::dns_type::a));
  }
  EXPECT_THAT(struck(), IsEmpty());
}

/// Twenty queries in pieces that fit no message; every second one is struck with SERVFAIL, and all answers are whole.
void expect_pipelined_answers(const std::string& address) {
  auto client = Peer::dial(address);
  std::string all;
  for (std::uint16_t id = 1; id <= 20; ++id)
    all += *protocols::dns_frame(query(id % 2 == 0 ? "web.internal" : "wide.internal", id % 2 == 0 ? 1 : 16, id));
  for (std::size_t at = 0; at < all.size(); at += 17) client.send(all.substr(at, 17));
  std::map<int, std::size_t> answers;
  for (int i = 0; i < 20; ++i) {
    protocols::DnsFrameReader reader;
    const auto length = client.receive(2);
    ASSERT_EQ(length.size(), 2u) << "of answer " << i + 1;
    reader.feed(length);
    reader.feed(client.receive(static_cast<std::size_t>(static_cast<unsigned char>(length.at(0))) << 8 |
                               static_cast<unsigned char>(length.at(1))));
    const auto answer = protocols::parse_dns(reader.take().value_or(""));
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_EQ(answer->rcode, answer->id % 2 == 0 ? 2 : 0);
    if (answer->id % 2 == 1) {
      EXPECT_GT(answer->answers.at(0).data.size(), 2000u);
    }
    ++answers[answer->id];
  }
  EXPECT_THAT(answers, SizeIs(20));
}

TEST_F(Dig, PipelinedQueriesAreStruckOneByOne) {
  strike(fault_of(DnsCase::serv_fail, "web.internal"));
  expect_pipelined_answers(udp_);
  EXPECT_THAT(struck(), SizeIs(10));
}

// What cuts bytes into parts may stand before and behind: answers that are made up come between two of the resolver's.
TEST_F(Dig, WhateverStandsBesideItMessagesStayWhole) {
  const auto dns = *dns_fault(fault_of(DnsCase::serv_fail, "web.internal"), Transport::tcp);
  const auto other = *dns_fault(fault_of(DnsCase::ttl, "*"), Transport::tcp);
  const proxy::Selector down{proxy::Flow::to_client};
  const proxy::Fault slow{"slow", down, proxy::Bandwidth{200'000}};
  const proxy::Fault sliced{"sliced", down, proxy::Slice{40, 20, 100us}};
  const proxy::Fault late{"late", {}, proxy::Jitter{0ms, 2ms}};
  const std::vector<std::pair<const char*, std::vector<proxy::Fault>>> orders = {
      {"bandwidth behind", {dns, slow}},         {"bandwidth before", {slow, dns}},
      {"slices behind", {dns, sliced}},          {"slices before", {sliced, dns}},
      {"both around", {slow, dns, sliced}},      {"all of them", {late, dns, slow, sliced}},
      {"two of DNS", {sliced, dns, slow, other}}};
  std::size_t expected = 0;
  for (const auto& [order, faults] : orders) {
    SCOPED_TRACE(order);
    rig_.set("tcp", faults);
    expect_pipelined_answers(udp_);
    const auto all = rig_.events(EventKind::struck);
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& one) { return one.fault == "dns-serv-fail"; }),
              static_cast<std::ptrdiff_t>(expected += 10));
  }
  EXPECT_THAT(rig_.events(EventKind::let_through), IsEmpty());
}

TEST_F(Dig, AnAnswerThatIsMadeUpPassesWhatStandsBehind) {
  for (const auto transport : {Transport::udp, Transport::tcp})
    for (const bool behind : {true, false}) {
      SCOPED_TRACE(behind);
      const auto dns = *dns_fault(fault_of(DnsCase::serv_fail), transport);
      const proxy::Fault late{"late", {proxy::Flow::to_client}, proxy::Latency{proxy::FixedTime{300ms}}};
      rig_.set(transport == Transport::udp ? "udp" : "tcp", behind ? std::vector{dns, late} : std::vector{late, dns});
      const auto begin = Clock::now();
      EXPECT_THAT(dig(udp_, {"db.internal", transport == Transport::udp ? "+notcp" : "+tcp"}), HasSubstr("SERVFAIL"));
      EXPECT_EQ(Clock::now() - begin >= 300ms, behind);
    }
}

// A fault that goes with an answer still to come, in the middle of one of the resolver's.
TEST_F(Dig, AnAnswerThatIsLateWhenTheFaultGoesSplitsNoOther) {
  auto late = fault_of(DnsCase::serv_fail, "web.internal");
  late.delay = proxy::FixedTime{1h};
  std::atomic<bool> go_on{false};
  const auto answer = *protocols::dns_frame(query("db.internal", 1, 7));
  auto reply = answer;
  reply[4] = static_cast<char>(static_cast<unsigned char>(reply[4]) | 0x80);  // a response
  proxy::Upstream half([&](Peer& peer) {
    peer.receive(answer.size());
    peer.send(reply.substr(0, 10));
    EXPECT_TRUE(proxy::eventually([&] { return go_on.load(); }));
    peer.send(reply.substr(10));
    peer.receive_all();
  });
  const auto address = rig_.link("half", half.address(), {*dns_fault(late, Transport::tcp)});
  auto client = Peer::dial(address);
  client.send(answer + *protocols::dns_frame(query("web.internal", 1, 8)));
  EXPECT_TRUE(proxy::eventually([&] { return rig_.stats("half").bytes_from_upstream == 10; }));
  EXPECT_TRUE(proxy::eventually([&] { return rig_.stats("half").strikes == 1; }));
  rig_.set("half", {});
  const auto length = client.receive(2);
  ASSERT_EQ(length.size(), 2u);
  const auto first = protocols::parse_dns(client.receive(
      static_cast<std::size_t>(static_cast<unsigned char>(length[0]) << 8 | static_cast<unsigned char>(length[1]))));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->id, 8) << "the one that was late";
  go_on = true;
  EXPECT_EQ(client.receive(reply.size()), reply);
}

TEST_F(Dig, OccurrencesAreCountedOverClientsAndDrawsAreTheSeeds) {
  auto fault = fault_of(DnsCase::refused);
  fault.occurrences = {2, 2, 1};
  strike(fault);
  EXPECT_THAT(dig(udp_, {"db.internal"}), HasSubstr("NOERROR"));
  EXPECT_THAT(dig(udp_, {"db.internal"}), HasSubstr("REFUSED"));
  EXPECT_THAT(dig(udp_, {"db.internal"}), HasSubstr("NOERROR"));
  const auto decisions = [](std::uint64_t seed) {
    const Dnsmasq resolver;
    proxy::EngineOptions options;
    options.seed = seed;
    Rig rig(std::move(options));
    auto half = fault_of(DnsCase::refused);
    half.probability = 0.5;
    const auto address = rig.udp_link("udp", resolver.address(), {*dns_fault(half, Transport::udp)});
    std::string said;
    for (int i = 0; i < 24; ++i)
      said += protocols::parse_dns(asked(address, query("db.internal", 1), false))->rcode == 5 ? 'R' : '.';
    return said;
  };
  const auto first = decisions(1);
  EXPECT_EQ(first, decisions(1));
  EXPECT_NE(first, decisions(2));
  EXPECT_NE(first.find('R'), std::string::npos);
  EXPECT_NE(first.find('.'), std::string::npos);
}

TEST_F(Dig, WhatIsNoDnsPassesAndIsSaid) {
  UdpPeer upstream, client;
  const auto address =
      rig_.udp_link("plain", upstream.address(), {*dns_fault(fault_of(DnsCase::serv_fail), Transport::udp)});
  for (const std::string_view bytes : {"", "x", "no DNS message at all, and longer than a header"}) {
    client.send_to(address, bytes);
    EXPECT_EQ(upstream.receive(), bytes);
  }
  const auto said = rig_.await(EventKind::let_through, 3);
  EXPECT_THAT(said.at(1).detail, HasSubstr("not a DNS message"));
  EXPECT_EQ(rig_.stats("plain").strikes, 0u);
}

TEST_F(Dig, AnAnswerThatIsLateWhenTheFaultGoesComesAtOnce) {
  auto fault = fault_of(DnsCase::refused);
  fault.delay = proxy::FixedTime{1h};
  strike(fault);
  UdpPeer datagrams;
  auto stream = Peer::dial(udp_);
  datagrams.send_to(udp_, query("db.internal", 1));
  stream.send(*protocols::dns_frame(query("db.internal", 1)));
  rig_.await(EventKind::struck, 2);
  EXPECT_GT(rig_.stats("udp").held_bytes, 0u);
  EXPECT_GT(rig_.stats("tcp").held_bytes, 0u);
  rig_.set("udp", {});
  rig_.set("tcp", {});
  EXPECT_EQ(protocols::parse_dns(datagrams.receive())->rcode, 5);
  EXPECT_THAT(stream.receive(2), SizeIs(2));
  EXPECT_TRUE(proxy::eventually([&] { return rig_.stats("udp").held_bytes + rig_.stats("tcp").held_bytes == 0; }));
}

}  // namespace
}  // namespace leafcutter::node::dns_faults
