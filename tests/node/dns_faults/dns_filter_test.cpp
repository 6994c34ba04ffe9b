// DNS faults on chains under a virtual clock: which messages are struck, and how a stream is cut does not matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "../proxy/chain_rig.hpp"
#include "a_fault.hpp"
#include "base/random.hpp"
#include "node/dns_faults/dns_conversation.hpp"
#include "protocols/dns_frames.hpp"

namespace leafcutter::node::dns_faults {
namespace {

using namespace std::chrono_literals;
using proxy::Direction;
using proxy::Transport;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string query(const std::string& name, const std::string& type = "A", std::uint16_t id = 7, bool edns = true) {
  protocols::DnsMessage message;
  message.id = id;
  message.recursion_desired = true;
  message.questions = {{*protocols::DnsName::from_text(name), *protocols::dns_type_number(type), 1}};
  if (edns) message.additional = {*to_record(protocols::DnsEdns{})};
  return *encode_dns(message);
}

std::string answer_to(const std::string& asked, const std::string& address = "203.0.113.1") {
  return *encode_dns(*dns_addresses(*protocols::parse_dns(asked), {*protocols::parse_dns_address(address)}, 600, {}));
}

std::string framed(const std::string& message) { return *protocols::dns_frame(message); }

/// Both directions of connections under one fault: the filters, as the engine has them.
class Talk {
 public:
  explicit Talk(const DnsFault& fault, Transport transport = Transport::udp, std::uint64_t position = 0)
      : transport_(transport), position_(position), fault_(*dns_fault(fault, transport)) {}
  std::unique_ptr<proxy::StreamOrDatagramFilter> filter(Direction direction, std::uint64_t connection = 1) const {
    return std::get<proxy::Filter>(fault_.effect)
        .make->make({transport_, direction, connection, 99 + connection, "link", position_});
  }

 private:
  Transport transport_;
  std::uint64_t position_;
  proxy::Fault fault_;
};

std::string all(const std::vector<proxy::Passage>& passages) {
  std::string bytes;
  for (const auto& one : passages) bytes += one.bytes;
  return bytes;
}

protocols::DnsMessage only_answer(const proxy::Filtered& filtered) {
  EXPECT_THAT(filtered.back, SizeIs(1));
  EXPECT_THAT(filtered.onward, IsEmpty());
  EXPECT_THAT(filtered.acts, SizeIs(1));
  if (filtered.back.size() != 1) return {};
  const auto parsed = protocols::parse_dns(filtered.back[0].bytes);
  EXPECT_TRUE(parsed);
  return parsed ? *parsed : protocols::DnsMessage{};
}

void expect_untouched(const proxy::Filtered& filtered, const std::string& bytes) {
  EXPECT_EQ(all(filtered.onward), bytes);
  EXPECT_THAT(filtered.back, IsEmpty());
  for (const auto& act : filtered.acts) EXPECT_FALSE(act.struck) << act.detail;
}

TEST(DnsDatagrams, AnswersEchoIdAndQuestionAndKeepEdns) {
  for (const auto dns_case : {DnsCase::refused, DnsCase::serv_fail, DnsCase::nx_domain, DnsCase::empty_answer,
                              DnsCase::truncated, DnsCase::random_address}) {
    const Talk talk(fault_of(dns_case));
    for (const bool edns : {true, false}) {
      const auto asked = query("Db.InterNal", "A", 4711, edns);
      const auto answer = only_answer(talk.filter(Direction::to_upstream)->arrived(asked));
      EXPECT_EQ(answer.id, 4711);
      EXPECT_EQ(answer.questions, protocols::parse_dns(asked)->questions) << "with the case of its letters";
      EXPECT_EQ(edns_of(answer)->has_value(), edns);
      EXPECT_TRUE(answer.response && answer.recursion_desired && answer.recursion_available);
      EXPECT_EQ(answer.truncated, dns_case == DnsCase::truncated);
      const bool negative = dns_case == DnsCase::nx_domain || dns_case == DnsCase::empty_answer;
      EXPECT_EQ(answer.authorities.size(), negative ? 1u : 0u) << name_of(dns_case);
      EXPECT_EQ(answer.answers.size(), dns_case == DnsCase::random_address ? 1u : 0u);
    }
  }
}

TEST(DnsDatagrams, StrikesByNameTypeAndOccurrenceOverAllClients) {
  auto fault = fault_of(DnsCase::refused, "*.internal", {"AAAA"});
  fault.occurrences = {2, 3, 1};
  const Talk talk(fault);
  for (const auto* other : {"internal", "db.external"})
    expect_untouched(talk.filter(Direction::to_upstream)->arrived(query(other, "AAAA")), query(other, "AAAA"));
  const auto other_type = query("db.internal", "A");
  expect_untouched(talk.filter(Direction::to_upstream)->arrived(other_type), other_type);
  const auto asked = query("db.internal", "AAAA");
  std::vector<bool> struck;
  for (std::uint64_t client = 1; client <= 4; ++client)
    struck.push_back(talk.filter(Direction::to_upstream, client)->arrived(asked).onward.empty());
  EXPECT_THAT(struck, ElementsAre(false, true, true, false));
}

TEST(DnsDatagrams, DrawsAreTheSeedsAndProbabilityZeroTouchesNothing) {
  auto fault = fault_of(DnsCase::random_address);
  fault.probability = 0.5;
  fault.delay = proxy::UniformTime{1ms, 9ms};
  const auto decisions = [&] {
    const Talk talk(fault);
    std::string said;
    for (std::uint64_t client = 1; client <= 8; ++client) {
      const auto filter = talk.filter(Direction::to_upstream, client);
      for (std::uint16_t id = 0; id < 8; ++id)
        for (const auto& back : filter->arrived(query("a.b", "A", id)).back)
          said +=
              std::to_string(client) + "/" + std::to_string(id) + " " + std::to_string(back.delay.count()) + back.bytes;
    }
    return said;
  };
  const auto first = decisions();
  EXPECT_GT(first.size(), 500u);
  EXPECT_EQ(first, decisions());
  fault.probability = 0;
  EXPECT_THAT(decisions(), IsEmpty());
}

TEST(DnsDatagrams, WhatIsNoQueryIsLetThroughAndSaid) {
  const Talk talk(fault_of(DnsCase::serv_fail));
  const auto whole = query("a.b");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto filtered = talk.filter(Direction::to_upstream)->arrived(whole.substr(0, cut));
    expect_untouched(filtered, whole.substr(0, cut));
    ASSERT_THAT(filtered.acts, SizeIs(1)) << cut;
    EXPECT_THAT(filtered.acts[0].detail, HasSubstr("not a DNS message"));
  }
  const auto answer = answer_to(whole);
  expect_untouched(talk.filter(Direction::to_upstream)->arrived(answer), answer);
  auto update = *protocols::parse_dns(whole);
  update.opcode = 5;
  expect_untouched(talk.filter(Direction::to_upstream)->arrived(*encode_dns(update)), *encode_dns(update));
  EXPECT_EQ(only_answer(talk.filter(Direction::to_upstream)->arrived(whole)).rcode, 2) << "the twin";
}

TEST(DnsDatagrams, RepliesAreChangedOnlyWhenTheirQueryWasStruck) {
  auto fault = fault_of(DnsCase::ttl, "a.b");
  fault.ttl = 1;
  fault.occurrences = {2, 2, 1};
  const Talk talk(fault);
  const auto up = talk.filter(Direction::to_upstream), down = talk.filter(Direction::to_client);
  const auto asked = query("a.b"), answer = answer_to(asked);
  expect_untouched(down->arrived(answer), answer);
  expect_untouched(up->arrived(asked), asked);
  expect_untouched(down->arrived(answer), answer);
  expect_untouched(up->arrived(asked), asked);
  for (int copy = 0; copy < 2; ++copy) {
    const auto changed = down->arrived(answer);
    EXPECT_EQ(protocols::parse_dns(all(changed.onward))->answers.at(0).ttl, 1u);
    ASSERT_THAT(changed.acts, SizeIs(1));
    EXPECT_EQ(changed.acts[0].detail, "ttl: a.b A, query 2");
    EXPECT_TRUE(changed.acts[0].struck);
  }
  const auto other_id = answer_to(query("a.b", "A", 8));
  expect_untouched(down->arrived(other_id), other_id);
  expect_untouched(up->arrived(asked), asked);
  expect_untouched(down->arrived(answer), answer);
}

TEST(DnsDatagrams, WrongIdTruncationAndAddressesOfTheResolversAnswer) {
  const auto changed = [](DnsFault fault, const std::string& answer) {
    const Talk talk(fault);
    const auto up = talk.filter(Direction::to_upstream), down = talk.filter(Direction::to_client);
    expect_untouched(up->arrived(query("a.b")), query("a.b"));
    return *protocols::parse_dns(all(down->arrived(answer).onward));
  };
  const auto answer = answer_to(query("a.b"));
  EXPECT_NE(changed(fault_of(DnsCase::wrong_id), answer).id, 7);
  auto truncated = fault_of(DnsCase::truncated);
  truncated.on_reply = true;
  EXPECT_TRUE(changed(truncated, answer).truncated);
  EXPECT_THAT(changed(truncated, answer).answers, IsEmpty());
  auto wrong = fault_of(DnsCase::wrong_answers);
  wrong.on_reply = true;
  wrong.addresses = {"2001:db8::5", "192.0.2.5"};
  const auto replaced = changed(wrong, answer);
  EXPECT_EQ(replaced.answers.at(0).data, std::string("\xc0\x00\x02\x05", 4));
  EXPECT_EQ(replaced.answers.at(0).ttl, 600u);
  // An answer without an address cannot be wrong about one.
  const auto none = *encode_dns(*dns_negative(*protocols::parse_dns(query("a.b")), 3, {}));
  EXPECT_EQ(*encode_dns(changed(wrong, none)), none);
}

/// Every way to cut `bytes` into two, fed to a fresh filter; `see` gets what came of all parts together.
template <class See>
void cut_everywhere(const Talk& talk, Direction direction, const std::string& bytes, See see) {
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto filter = talk.filter(direction, cut + 1);
    proxy::Filtered together;
    for (const auto& part : {bytes.substr(0, cut), bytes.substr(cut)}) {
      if (part.empty()) continue;
      auto one = filter->arrived(part);
      std::move(one.onward.begin(), one.onward.end(), std::back_inserter(together.onward));
      std::move(one.back.begin(), one.back.end(), std::back_inserter(together.back));
      std::move(one.acts.begin(), one.acts.end(), std::back_inserter(together.acts));
    }
    see(together, cut);
  }
}

TEST(DnsStreams, HoweverTheyAreCutTheSameQueriesAreStruck) {
  const Talk talk(fault_of(DnsCase::refused, "b.b"), Transport::tcp);
  const auto first = framed(query("a.b", "A", 1)), second = framed(query("b.b", "A", 2)),
             third = framed(query("c.b", "A", 3));
  cut_everywhere(talk, Direction::to_upstream, first + second + third, [&](const auto& filtered, std::size_t cut) {
    EXPECT_EQ(all(filtered.onward), first + third) << cut;
    ASSERT_THAT(filtered.back, SizeIs(1)) << cut;
    protocols::DnsFrameReader reader;
    EXPECT_EQ(reader.feed(filtered.back[0].bytes), filtered.back[0].bytes.size());
    const auto answer = protocols::parse_dns(*reader.take());
    EXPECT_EQ(answer->id, 2);
    EXPECT_EQ(answer->rcode, 5);
    ASSERT_THAT(filtered.acts, SizeIs(1));
  });
  const auto filter = talk.filter(Direction::to_upstream, 900);
  std::string onward;
  for (const char byte : first + second + third) onward += all(filter->arrived({&byte, 1}).onward);
  EXPECT_EQ(onward, first + third) << "byte after byte";
}

TEST(DnsStreams, AnswersAreChangedHoweverTheyAreCut) {
  auto fault = fault_of(DnsCase::ttl, "b.b");
  fault.ttl = 5;
  const Talk talk(fault, Transport::tcp);
  const auto first = answer_to(query("a.b", "A", 1)), second = answer_to(query("b.b", "A", 2));
  for (std::size_t cut = 0; cut <= first.size() + second.size() + 4; ++cut) {
    const auto up = talk.filter(Direction::to_upstream, cut + 1), down = talk.filter(Direction::to_client, cut + 1);
    const auto asked = framed(query("a.b", "A", 1)) + framed(query("b.b", "A", 2));
    expect_untouched(up->arrived(asked), asked);
    const auto bytes = framed(first) + framed(second);
    auto out = all(down->arrived(bytes.substr(0, cut)).onward);
    out += all(down->arrived(bytes.substr(cut)).onward);
    EXPECT_EQ(out.substr(0, first.size() + 2), framed(first));
    EXPECT_EQ(protocols::parse_dns(out.substr(first.size() + 4))->answers.at(0).ttl, 5u) << cut;
  }
}

TEST(DnsStreams, WhatIsNoDnsIsLetThroughAsItComesAndSaidOnce) {
  const Talk talk(fault_of(DnsCase::refused), Transport::tcp);
  for (const auto& text :
       std::vector<std::string>{"GET / HTTP/1.1\r\n\r\n", "hello\n",
                                std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x11\x12\x13", 14)}) {
    const auto filter = talk.filter(Direction::to_upstream);
    const auto filtered = filter->arrived(text);
    expect_untouched(filtered, text);
    EXPECT_THAT(filtered.acts, SizeIs(1)) << text;
    expect_untouched(filter->arrived("more"), "more");
  }
  // A message that cannot be read within its length: only that one is let through.
  const auto filter = talk.filter(Direction::to_upstream);
  const auto torn = query("a.b").substr(0, 20);
  const auto filtered = filter->arrived(framed(torn) + framed("") + framed(query("a.b")));
  EXPECT_EQ(all(filtered.onward), framed(torn) + framed(""));
  EXPECT_THAT(filtered.back, SizeIs(1));
  EXPECT_THAT(filtered.acts, SizeIs(3));
}

TEST(DnsStreams, AnEndOrARemovalWithinAMessageLosesNothing) {
  const Talk talk(fault_of(DnsCase::refused), Transport::tcp);
  const auto torn = framed(query("a.b")).substr(0, 21);
  auto filter = talk.filter(Direction::to_upstream);
  EXPECT_THAT(all(filter->arrived(torn).onward), IsEmpty());
  EXPECT_EQ(filter->held_bytes(), torn.size());
  const auto ended = filter->ended();
  expect_untouched(ended, torn);
  EXPECT_THAT(ended.acts.at(0).detail, HasSubstr("ended within"));
  filter = talk.filter(Direction::to_upstream, 2);
  EXPECT_THAT(all(filter->arrived(torn).onward), IsEmpty());
  EXPECT_EQ(filter->removed(), torn);
  EXPECT_EQ(filter->held_bytes(), 0u);
}

TEST(DnsStreams, AFaultThatBeginsOnAnOpenConnectionFindsTheNextMessageOrTouchesNothing) {
  const Talk talk(fault_of(DnsCase::refused), Transport::tcp, 100);
  const auto whole = framed(query("a.b"));
  EXPECT_THAT(talk.filter(Direction::to_upstream)->arrived(whole).back, SizeIs(1));
  for (std::size_t begun = 1; begun < whole.size(); ++begun) {
    const auto filter = talk.filter(Direction::to_upstream, begun + 1);
    const auto rest = whole.substr(begun);
    const auto filtered = filter->arrived(rest);
    expect_untouched(filtered, rest);
    EXPECT_THAT(filtered.acts, SizeIs(1)) << begun;
    expect_untouched(filter->arrived(whole), whole);
  }
}

/// Bytes as nobody sends them: good messages with some bytes changed, cut out or doubled.
std::string spoiled(base::Stream& draws) {
  std::string bytes;
  for (std::uint64_t i = 1 + draws.below(4); i > 0; --i)
    bytes += framed(draws.below(2) == 0 ? query("a.b", "A", static_cast<std::uint16_t>(draws.below(65536)))
                                        : answer_to(query("c.d")));
  for (std::uint64_t i = draws.below(6); i > 0; --i) {
    const auto at = draws.below(bytes.size());
    switch (draws.below(3)) {
      case 0: bytes[at] = static_cast<char>(draws.below(256)); break;
      case 1: bytes.erase(at, 1 + draws.below(5)); break;
      default: bytes.insert(at, bytes.substr(0, draws.below(9)));
    }
    if (bytes.empty()) bytes = "x";
  }
  return bytes;
}

TEST(DnsStreams, WhateverComesAFaultOfAnotherNameChangesNoByte) {
  base::Stream draws(1, "spoiled", 0);
  for (int round = 0; round < 20'000; ++round) {
    auto fault = fault_of(round % 2 == 0 ? DnsCase::serv_fail : DnsCase::ttl, "nobody.asks.this");
    const Talk talk(fault, Transport::tcp, round % 5 == 0 ? 100 : 0);
    const auto direction = round % 3 == 0 ? Direction::to_client : Direction::to_upstream;
    const auto filter = talk.filter(direction);
    const auto bytes = spoiled(draws);
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto part = bytes.substr(at, 1 + draws.below(40));
      at += part.size();
      const auto filtered = filter->arrived(part);
      for (const auto& act : filtered.acts) ASSERT_FALSE(act.struck) << act.detail;
      ASSERT_THAT(filtered.back, IsEmpty());
      out += all(filtered.onward);
    }
    out += all(filter->ended().onward);
    ASSERT_EQ(out, bytes) << round;
  }
}

TEST(DnsDatagrams, WhateverComesWhatGoesBackIsAMessageAndTheRestIsUntouched) {
  base::Stream draws(2, "spoiled", 0);
  std::map<std::string_view, int> answered;
  for (int round = 0; round < 20'000; ++round) {
    auto fault = fault_of(every_dns_case[draws.below(std::size(every_dns_case))]);
    if (fault.dns_case == DnsCase::delay) fault.delay = proxy::FixedTime{1ms};
    if (fault.dns_case == DnsCase::wrong_answers) fault.addresses = {"192.0.2.1", "2001:db8::1"};
    const Talk talk(fault);
    const auto up = talk.filter(Direction::to_upstream), down = talk.filter(Direction::to_client);
    const auto bytes = spoiled(draws).substr(2);
    const auto filtered = up->arrived(bytes);
    for (const auto& back : filtered.back) {
      const auto answer = protocols::parse_dns(back.bytes);
      ASSERT_TRUE(answer) << answer.error().text();
      EXPECT_EQ(back.bytes.substr(0, 2), bytes.substr(0, 2)) << "the ID";
      ++answered[name_of(fault.dns_case)];
    }
    for (const auto& onward : filtered.onward) ASSERT_EQ(onward.bytes, bytes);
    if (down != nullptr) {
      for (const auto& onward : down->arrived(bytes).onward) {
        ASSERT_EQ(onward.bytes.size() > 0, bytes.size() > 0);
      }
    }
  }
  EXPECT_GE(answered.size(), 7u) << "all that answer did";
}

TEST(DnsStreams, ADelayedQueryIsOvertakenAndTheEndWaitsForIt) {
  auto fault = fault_of(DnsCase::delay, "a.b");
  fault.delay = proxy::FixedTime{50ms};
  proxy::StreamRig rig({*dns_fault(fault, Transport::tcp)});
  const auto slow = framed(query("a.b", "A", 1)), quick = framed(query("b.b", "A", 2));
  rig.send(slow + quick);
  rig.end();
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(proxy::Left{0ms, quick}, proxy::Left{50ms, slow}, proxy::Left{50ms, "<end>"}));
  EXPECT_EQ(rig.log.count("dns-delay"), 1u);
  EXPECT_EQ(rig.log.lines.at(0).delay, 50ms);
}

TEST(DnsStreams, WhenTheFaultGoesWhatItHeldGoesOn) {
  auto fault = fault_of(DnsCase::delay, "a.b");
  fault.delay = proxy::FixedTime{1h};
  proxy::StreamRig rig({*dns_fault(fault, Transport::tcp)});
  const auto slow = framed(query("a.b", "A", 1)), half = framed(query("b.b", "A", 2)).substr(0, 9);
  rig.send(slow + half);
  EXPECT_THAT(rig.left, IsEmpty());
  EXPECT_GT(rig.chain().cost(), slow.size() + half.size());
  rig.replace({});
  EXPECT_EQ(rig.text(), slow + half);
  EXPECT_TRUE(rig.chain().idle());
}

}  // namespace
}  // namespace leafcutter::node::dns_faults
