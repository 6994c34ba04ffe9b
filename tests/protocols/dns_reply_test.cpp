#include "protocols/dns_reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "tests/protocols/dns_packets.hpp"

using namespace leafcutter::protocols;
using dns_packets::from_hex;
using dns_packets::name;
using dns_packets::packet;
using dns_packets::parsed;
using leafcutter::base::ErrorCode;
using leafcutter::base::Expected;
using leafcutter::base::Stream;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr std::array<std::uint8_t, 16> no_bytes = {};

/// The message as its receiver reads it.
DnsMessage sent(const Expected<DnsMessage>& message) {
  if (!message) throw std::runtime_error(message.error().message);
  auto bytes = encode_dns(*message);
  if (!bytes) throw std::runtime_error(bytes.error().message);
  return parsed(*bytes);
}

DnsMessage query_for(const char* asked, std::uint16_t type) {
  DnsMessage query;
  query.id = 0x4242;
  query.recursion_desired = true;
  query.questions.push_back({name(asked), type});
  return query;
}

DnsAddress address(const char* text) { return *parse_dns_address(text); }

std::uint32_t u32(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes.at(i));
  return value;
}

std::vector<DnsRecord*> records_of(DnsMessage& message) {
  std::vector<DnsRecord*> records;
  for (auto* section : {&message.answers, &message.authorities, &message.additional})
    for (auto& record : *section) records.push_back(&record);
  return records;
}

TEST(DnsReplaceAddresses, PutsThemInTurnIntoTheirKindOfRecordsAlone) {
  const auto owner = name("a.b");
  const auto record = [&](std::uint16_t type, const std::string& data, std::uint16_t class_number = dns_class::in) {
    return DnsRecord{owner, type, class_number, 60, data};
  };
  DnsMessage answer;
  answer.answers = {record(dns_type::cname, owner.wire()),
                    record(dns_type::a, "1111"),
                    record(dns_type::a, "2222"),
                    record(dns_type::a, "3333"),
                    record(dns_type::aaaa, "0123456789abcdef"),
                    record(dns_type::a, "4444", 3)};
  const auto before = answer;
  const auto count = dns_replace_addresses(answer, {{"AAAA"}, {"ffffffffffffffff"}, {"BBBB"}});
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, 4u);
  EXPECT_EQ(answer.answers[1].data + answer.answers[2].data + answer.answers[3].data, "AAAABBBBAAAA");
  EXPECT_EQ(answer.answers[4].data, "ffffffffffffffff");
  EXPECT_EQ(answer.answers[0], before.answers[0]);
  EXPECT_EQ(answer.answers[5], before.answers[5]) << "another class";
  answer = before;
  EXPECT_EQ(*dns_replace_addresses(answer, {{"ffffffffffffffff"}}), 1u);
  EXPECT_EQ(answer.answers[1], before.answers[1]) << "no address of its kind is given";
}

}  // namespace

// --- Made from a query

TEST(DnsReply, EveryAnswerBelongsToItsQuery) {
  struct Row {
    const char* what;
    Expected<DnsMessage> (*make)(const DnsMessage&);
    std::uint8_t rcode;
    bool truncated;
    std::size_t answers, authorities;
  };
  const Row rows[] = {
      {"REFUSED", [](const DnsMessage& q) { return dns_failure(q, dns_rcode::refused); }, 5, false, 0, 0},
      {"SERVFAIL", [](const DnsMessage& q) { return dns_failure(q, dns_rcode::server_failure); }, 2, false, 0, 0},
      {"NXDOMAIN", [](const DnsMessage& q) { return dns_negative(q, dns_rcode::name_error, {}); }, 3, false, 0, 1},
      {"empty", [](const DnsMessage& q) { return dns_negative(q, dns_rcode::no_error, {}); }, 0, false, 0, 1},
      {"truncated", [](const DnsMessage& q) { return dns_truncation(q); }, 0, true, 0, 0},
      {"wrong", [](const DnsMessage& q) { return dns_addresses(q, {address("192.0.2.66")}, 5, {}); }, 0, false, 1, 0},
      {"random", [](const DnsMessage& q) { return dns_random_address(q, no_bytes, 5, {}); }, 0, false, 1, 0},
  };
  for (const auto& row : rows) {
    for (const auto* file : {"query_a", "query_a_case", "query_a_cookie", "query_a_options"}) {
      SCOPED_TRACE(std::string(row.what) + " to " + file);
      auto query = parsed(packet(file));
      query.checking_disabled = true;
      const auto reply = sent(row.make(query));
      EXPECT_EQ(reply.id, query.id);
      EXPECT_TRUE(reply.response);
      EXPECT_EQ(reply.opcode, query.opcode);
      EXPECT_TRUE(reply.recursion_desired);
      EXPECT_TRUE(reply.recursion_available);
      EXPECT_TRUE(reply.checking_disabled);
      EXPECT_FALSE(reply.authentic_data) << "nothing was validated";
      EXPECT_FALSE(reply.authoritative);
      EXPECT_EQ(reply.questions, query.questions) << "with the case of its letters";
      EXPECT_EQ(reply.rcode, row.rcode);
      EXPECT_EQ(reply.truncated, row.truncated);
      EXPECT_EQ(reply.answers.size(), row.answers);
      EXPECT_EQ(reply.authorities.size(), row.authorities);
      for (const auto& record : reply.answers) EXPECT_EQ(record.name, query.questions[0].name) << "case as asked";
      const auto asked = *edns_of(query), answered = *edns_of(reply);
      ASSERT_EQ(answered.has_value(), asked.has_value()) << "EDNS exactly when the query had it";
      if (asked) {
        EXPECT_EQ(answered->udp_payload, asked->udp_payload);
        EXPECT_EQ(answered->dnssec_ok, asked->dnssec_ok);
        EXPECT_EQ(answered->version, 0);
        EXPECT_EQ(answered->extended_rcode, 0);
      }
    }
  }
}

TEST(DnsReply, AnAnswerGetsNoAnswer) {
  auto answer = parsed(packet("answer_a"));
  EXPECT_THAT(dns_failure(answer, dns_rcode::refused).error().message, HasSubstr("answer itself"));
  EXPECT_FALSE(dns_truncation(answer).ok());
  EXPECT_FALSE(dns_negative(answer, dns_rcode::name_error, {}).ok());
  EXPECT_FALSE(dns_addresses(answer, {}, 1, {}).ok());
  answer.response = false;
  EXPECT_TRUE(dns_failure(answer, dns_rcode::refused).ok());
}

TEST(DnsReply, WhatDependsOnAQuestionNeedsExactlyOne) {
  auto query = query_for("shop.example", dns_type::a);
  query.questions.push_back(query.questions[0]);
  EXPECT_THAT(dns_negative(query, dns_rcode::name_error, {}).error().message, HasSubstr("2 questions"));
  EXPECT_FALSE(dns_random_address(query, no_bytes, 1, {}).ok());
  EXPECT_EQ(sent(dns_failure(query, dns_rcode::refused)).questions.size(), 2u);
  query.questions.clear();
  EXPECT_THAT(dns_addresses(query, {}, 1, {}).error().message, HasSubstr("0 questions"));
  EXPECT_TRUE(dns_failure(query, dns_rcode::server_failure).ok());
}

TEST(DnsReply, BrokenEdnsOfTheQueryIsAnError) {
  auto query = parsed(packet("query_a_options"));
  query.additional[0].data.pop_back();
  EXPECT_EQ(dns_failure(query, dns_rcode::refused).error().code, ErrorCode::protocol);
}

TEST(DnsReply, AWholeCookieComesBackAndHalfOfOneDoesNot) {
  auto query = parsed(packet("query_a_cookie"));
  ASSERT_EQ((*edns_of(query))->options[0].code, 10);
  EXPECT_TRUE((*edns_of(sent(dns_failure(query, 5))))->options.empty());
  DnsEdns edns;
  edns.options = {{10, std::string(24, 'c')}, {65001, "other"}};
  query.additional[0] = *to_record(edns);
  EXPECT_THAT((*edns_of(sent(dns_failure(query, 5))))->options, ElementsAre(edns.options[0]));
}

TEST(DnsReply, ANegativeAnswerSaysHowLongItMayBeCached) {
  const auto query = query_for("a.b.shop.example", dns_type::mx);
  struct Row {
    std::optional<DnsName> zone;
    const char* owner;
  };
  const Row rows[] = {{std::nullopt, "b.shop.example"},
                      {name("shop.example"), "shop.example"},
                      {name("SHOP.example"), "SHOP.example"},
                      {name("a.b.shop.example"), "a.b.shop.example"},
                      {DnsName(), "."}};
  for (const auto& row : rows) {
    const auto reply = sent(dns_negative(query, dns_rcode::name_error, {77, row.zone}));
    ASSERT_EQ(reply.authorities.size(), 1u);
    const auto& soa = reply.authorities[0];
    EXPECT_EQ(soa.name.text(), row.owner);
    EXPECT_EQ(soa.type, dns_type::soa);
    EXPECT_EQ(soa.ttl, 77u);
    EXPECT_EQ(u32(soa.data, soa.data.size() - 4), 77u) << "MINIMUM";
    EXPECT_TRUE(reply.answers.empty());
  }
  EXPECT_EQ(sent(dns_negative(query_for("redis", 1), 3, {})).authorities[0].name, DnsName());
  EXPECT_EQ(sent(dns_negative(query_for(".", 1), 3, {})).authorities[0].name, DnsName());
}

TEST(DnsReply, AZoneThatDoesNotHoldTheNameIsRefused) {
  const auto query = query_for("shop.example", dns_type::a);
  for (const auto* zone : {"other", "a.shop.example", "op.example", "hop.example"}) {
    const auto reply = dns_negative(query, dns_rcode::name_error, {30, name(zone)});
    ASSERT_FALSE(reply.ok()) << zone;
    EXPECT_EQ(reply.error().code, ErrorCode::bad_input);
    EXPECT_THAT(reply.error().message, HasSubstr("`" + std::string(zone) + "` does not hold `shop.example`"));
  }
}

TEST(DnsReply, WrongAddressesAreOfTheTypeThatWasAskedFor) {
  const std::vector<DnsAddress> list = {address("192.0.2.66"), address("2001:db8::66"), address("192.0.2.67")};
  struct Row {
    std::uint16_t type, class_number;
    std::vector<std::size_t> expected;
  };
  const Row rows[] = {{dns_type::a, dns_class::in, {0, 2}},      {dns_type::aaaa, dns_class::in, {1}},
                      {dns_type::any, dns_class::in, {0, 1, 2}}, {dns_type::mx, dns_class::in, {}},
                      {dns_type::a, 3 /* CHAOS */, {}},          {dns_type::a, dns_class::any, {0, 2}}};
  for (const auto& row : rows) {
    auto query = query_for("Shop.example", row.type);
    query.questions[0].class_number = row.class_number;
    const auto reply = sent(dns_addresses(query, list, 9, {}));
    std::vector<DnsRecord> expected;
    for (const auto i : row.expected) {
      expected.push_back({name("Shop.example"), list[i].bytes.size() == 4 ? dns_type::a : dns_type::aaaa, dns_class::in,
                          9, list[i].bytes});
    }
    EXPECT_EQ(reply.answers, expected) << dns_type_name(row.type);
    EXPECT_EQ(reply.rcode, dns_rcode::no_error);
    EXPECT_EQ(reply.authorities.size(), expected.empty() ? 1u : 0u) << "an empty answer says for how long";
  }
}

TEST(DnsReply, RandomAddressesFollowTheirBytesAndBelongToNobody) {
  std::set<std::string> seen;
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::array<std::uint8_t, 16> bytes = {};
    Stream random(3, "dns", round);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    const auto v4 = sent(dns_random_address(query_for("a", dns_type::a), bytes, 30, {})).answers.at(0);
    const auto v6 = sent(dns_random_address(query_for("a", dns_type::aaaa), bytes, 30, {})).answers.at(0);
    EXPECT_EQ(v4.ttl, 30u);
    EXPECT_EQ(u32(v4.data, 0) & 0xfffe0000, u32(address("198.18.0.0").bytes, 0));
    EXPECT_EQ(v6.data.substr(0, 4), address("2001:db8::").bytes.substr(0, 4));
    EXPECT_EQ(v4.data.size(), 4u);
    EXPECT_EQ(v6.data.size(), 16u);
    EXPECT_EQ(sent(dns_random_address(query_for("a", dns_type::a), bytes, 30, {})).answers.at(0), v4);
    seen.insert(v4.data);
    seen.insert(v6.data);
  }
  EXPECT_GT(seen.size(), 390u);
  const auto other = sent(dns_random_address(query_for("a", dns_type::txt), no_bytes, 30, {}));
  EXPECT_TRUE(other.answers.empty());
  EXPECT_EQ(other.authorities.size(), 1u);
}

TEST(DnsReply, AddressesAreReadAndWritten) {
  EXPECT_EQ(address("192.0.2.1").bytes, from_hex("c0000201"));
  for (const auto* text : {"192.0.2.1", "2001:db8::1", "::"}) EXPECT_EQ(to_text(address(text)), text);
  for (const auto* text : {"", "192.0.2", "192.0.2.1.", "shop", "2001:db8"})
    EXPECT_THAT(parse_dns_address(text).error().message, HasSubstr("`" + std::string(text) + "` is not an IP address"));
  EXPECT_FALSE(parse_dns_address(std::string_view("192.0.2.1\0x", 11)).ok());
}

// --- Made from an answer

TEST(DnsChange, TruncationKeepsQuestionAndEdnsAsTheyAre) {
  auto answer = parsed(packet("answer_any"));
  DnsEdns edns;
  edns.dnssec_ok = true;
  edns.options = {{65001, "kept"}};
  answer.additional.push_back(*to_record(edns));
  const auto cut = sent(dns_truncate(answer));
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.id, answer.id);
  EXPECT_EQ(cut.authoritative, answer.authoritative);
  EXPECT_EQ(cut.questions, answer.questions);
  EXPECT_TRUE(cut.answers.empty());
  EXPECT_TRUE(cut.authorities.empty());
  EXPECT_EQ(cut.additional, std::vector<DnsRecord>{*to_record(edns)});
  EXPECT_TRUE(sent(dns_truncate(parsed(packet("answer_mx")))).additional.empty()) << "an address is no EDNS";
}

TEST(DnsChange, ADatagramThatDoesNotFitIsTruncated) {
  EXPECT_EQ(dns_udp_limit(parsed(packet("query_a"))), 512u);
  EXPECT_EQ(dns_udp_limit(parsed(packet("query_a_cookie"))), 1232u);
  DnsEdns edns;
  edns.udp_payload = 100;  // RFC 6891 §6.2.3: below 512 means 512
  auto query = query_for("a", 1);
  query.additional.push_back(*to_record(edns));
  EXPECT_EQ(dns_udp_limit(query), 512u);
  const auto answer = parsed(packet("answer_any"));
  const auto size = encode_dns(answer)->size();
  EXPECT_EQ(*encode_dns_datagram(answer, size), *encode_dns(answer));
  const auto cut = parsed(*encode_dns_datagram(answer, size - 1));
  EXPECT_TRUE(cut.truncated);
  EXPECT_TRUE(cut.answers.empty());
}

TEST(DnsChange, SettingTtlsChangesThoseBytesAlone) {
  for (const auto* file : {"answer_a", "answer_cname", "answer_srv", "answer_soa", "answer_any", "answer_aaaa_edns",
                           "answer_nxdomain_soa", "answer_refused", "query_a_options"}) {
    SCOPED_TRACE(file);
    const auto before = packet(file);
    auto after = before;
    const auto written = dns_set_ttls(after, 0x01020304);
    ASSERT_TRUE(written.ok());
    ASSERT_EQ(after.size(), before.size());
    auto expected = parsed(before);
    std::size_t changed = 0;
    for (auto* record : records_of(expected)) {
      if (record->type == dns_type::opt) continue;
      record->ttl = 0x01020304;
      ++changed;
    }
    EXPECT_EQ(*written, changed);
    EXPECT_TRUE(parsed(after) == expected);
    std::size_t different = 0;
    for (std::size_t i = 0; i < after.size(); ++i) different += after[i] != before[i] ? 1 : 0;
    EXPECT_LE(different, changed * 4) << "compression, flags, OPT and data stay as they were";
    EXPECT_EQ(after == before, changed == 0);
  }
}

/// Its field holds DO and the extended rcode: as a TTL it would become another EDNS version.
TEST(DnsChange, SettingTtlsLeavesEdnsAlone) {
  auto bytes = packet("answer_aaaa_edns");
  const auto before = *edns_of(parsed(bytes));
  ASSERT_TRUE(dns_set_ttls(bytes, 0xffffffff).ok());
  EXPECT_EQ(parsed(bytes).answers[0].ttl, 0xffffffffu);
  EXPECT_EQ(*edns_of(parsed(bytes)), before);
}

TEST(DnsChange, TtlsOfASignedMessageAreNotSet) {
  struct Row {
    std::uint16_t type;
    std::string data;
    bool signs;
  };
  const Row rows[] = {
      {dns_type::tsig, "mac", true},
      {dns_type::sig, std::string(18, '\0') + std::string(1, '\0') + "signature", true},
      {dns_type::sig, std::string("\0\1", 2) + std::string(16, '\0') + std::string(1, '\0') + "signature", false},
      {46 /* RRSIG */, std::string(20, '\0'), false}};
  for (const auto& row : rows) {
    auto message = parsed(packet("answer_a"));
    message.additional.push_back({DnsName(), row.type, dns_class::any, 0, row.data});
    auto bytes = *encode_dns(message);
    const auto before = bytes;
    const auto readdressed = dns_replace_addresses(message, {*parse_dns_address("192.0.2.1")});
    EXPECT_EQ(readdressed.ok(), !row.signs) << dns_type_name(row.type);
    const auto written = dns_set_ttls(bytes, 7);
    EXPECT_EQ(written.ok(), !row.signs) << dns_type_name(row.type);
    if (row.signs) {
      EXPECT_EQ(written.error().code, ErrorCode::unavailable);
      EXPECT_EQ(bytes, before);
    }
  }
}

TEST(DnsChange, TtlsOfWhatIsNoMessageAreNotSet) {
  auto bytes = packet("answer_cname");
  bytes.pop_back();
  const auto before = bytes;
  EXPECT_FALSE(dns_set_ttls(bytes, 7).ok());
  EXPECT_EQ(bytes, before);
}

/// The second record's owner is taken from the TTL of the first: 01 61 00 is the name `a`.
TEST(DnsChange, ATtlThatIsPartOfANameIsNotSet) {
  const auto crafted = from_hex(
      "1234 8180 0000 0002 0000 0000  00 0001 0001 01610000 0004 c0000201  c011 0001 0001 00000001 0004 c0000202");
  ASSERT_EQ(parsed(crafted).answers[1].name, name("a"));
  auto bytes = crafted;
  EXPECT_THAT(dns_set_ttls(bytes, 7).error().message, HasSubstr("points into a TTL"));
  EXPECT_EQ(bytes, crafted);
}

TEST(DnsChange, AnotherIdIsNeverTheSame) {
  for (std::uint32_t random = 0; random < 0x10000; ++random)
    ASSERT_NE(dns_other_id(0x1234, static_cast<std::uint16_t>(random)), 0x1234);
  EXPECT_NE(dns_other_id(7, 100), dns_other_id(7, 101));
  auto bytes = packet("answer_any");
  const auto before = bytes;
  ASSERT_TRUE(dns_set_id(bytes, 0xabcd).ok());
  EXPECT_EQ(parsed(bytes).id, 0xabcd);
  EXPECT_EQ(bytes.substr(2), before.substr(2));
  bytes.resize(11);
  EXPECT_THAT(dns_set_id(bytes, 1).error().message, HasSubstr("11 bytes"));
}
