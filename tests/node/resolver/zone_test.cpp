// What the resolver of a leaf answers.
#include "node/resolver/zone.hpp"

#include <gtest/gtest.h>

#include "protocols/dns_reply.hpp"

namespace leafcutter::node::resolver {
namespace {

using namespace protocols;

DnsMessage question(const std::string& name, std::uint16_t type, bool edns = true) {
  DnsMessage query;
  query.id = 99;
  query.recursion_desired = true;
  query.questions = {{*DnsName::from_text(name), type, dns_class::in}};
  if (edns) query.additional = {*to_record(DnsEdns{})};
  return query;
}

const Zone& zone() {
  static const Zone known({{"broker", {"10.77.0.1", "fd77::1"}}, {"shop", {"10.77.0.2"}}});
  return known;
}

DnsMessage answer(const DnsMessage& query) {
  const auto made = zone().answer(query);
  EXPECT_TRUE(made);
  if (!made) return {};
  EXPECT_EQ(made->id, query.id);
  EXPECT_EQ(made->questions, query.questions);
  EXPECT_TRUE(encode_dns(*made));
  return *made;
}

TEST(Zone, KnowsServicesByNameInAnyCase) {
  for (const auto* name : {"broker", "BroKer"}) {
    const auto made = answer(question(name, dns_type::a));
    ASSERT_EQ(made.answers.size(), 1u);
    EXPECT_EQ(to_text(DnsAddress{made.answers[0].data}), "10.77.0.1");
    EXPECT_EQ(made.answers[0].ttl, 0u);
    EXPECT_EQ(made.answers[0].name.text(), name);
    EXPECT_TRUE(made.authoritative);
    EXPECT_TRUE(edns_of(made)->has_value());
  }
  EXPECT_FALSE(edns_of(answer(question("broker", dns_type::a, false)))->has_value());
}

TEST(Zone, KnowsAddressesOfBothKinds) {
  const auto made = answer(question("broker", dns_type::aaaa));
  ASSERT_EQ(made.answers.size(), 1u);
  EXPECT_EQ(made.answers[0].type, dns_type::aaaa);
  EXPECT_EQ(to_text(DnsAddress{made.answers[0].data}), "fd77::1");
  EXPECT_EQ(answer(question("localhost", dns_type::aaaa)).answers.size(), 1u);
  const auto back =
      answer(question("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.7.7.d.f.ip6.arpa", dns_type::ptr));
  ASSERT_EQ(back.answers.size(), 1u);
  EXPECT_EQ(back.answers[0].data, DnsName::from_text("broker")->wire());
}

TEST(Zone, HasNoOtherRecordsOfThemAndSaysHowLongThatMayBeKept) {
  for (const auto& [name, type] : {std::pair{"shop", dns_type::aaaa}, {"broker", dns_type::mx}}) {
    const auto made = answer(question(name, type));
    EXPECT_EQ(made.rcode, dns_rcode::no_error);
    EXPECT_TRUE(made.answers.empty());
    ASSERT_EQ(made.authorities.size(), 1u);
    EXPECT_EQ(made.authorities[0].type, dns_type::soa);
    EXPECT_EQ(made.authorities[0].ttl, 0u);
  }
  EXPECT_EQ(answer(question("shop", dns_type::any)).answers.size(), 1u);
  EXPECT_EQ(answer(question("broker", dns_type::any)).answers.size(), 2u);
}

TEST(Zone, NoOtherNameExists) {
  for (const auto* name : {"brokers", "broker.shop", "example.com", "."}) {
    const auto made = answer(question(name, dns_type::a));
    EXPECT_EQ(made.rcode, dns_rcode::name_error) << name;
    EXPECT_EQ(made.authorities.size(), 1u);
  }
}

TEST(Zone, KnowsAddressesBackwardsAndLocalhost) {
  const auto made = answer(question("2.0.77.10.in-addr.arpa", dns_type::ptr));
  ASSERT_EQ(made.answers.size(), 1u);
  EXPECT_EQ(DnsName::from_wire(made.answers[0].data)->text(), "shop");
  EXPECT_TRUE(answer(question("2.0.77.10.in-addr.arpa", dns_type::a)).answers.empty());
  EXPECT_EQ(answer(question("3.0.77.10.in-addr.arpa", dns_type::ptr)).rcode, dns_rcode::name_error);
  EXPECT_EQ(to_text(DnsAddress{answer(question("localhost", dns_type::a)).answers.at(0).data}), "127.0.0.1");
}

TEST(Zone, RefusesWhatItDoesNotDo) {
  auto query = question("broker", dns_type::a);
  query.opcode = 4;
  EXPECT_EQ(answer(query).rcode, dns_rcode::not_implemented);
  query = question("broker", dns_type::a);
  query.questions[0].class_number = 3;
  EXPECT_EQ(answer(query).rcode, dns_rcode::refused);
  query = question("broker", dns_type::a);
  query.questions.push_back(query.questions[0]);
  EXPECT_EQ(answer(query).rcode, dns_rcode::format_error);
  query = question("broker", dns_type::a);
  DnsEdns newer;
  newer.version = 1;
  query.additional = {*to_record(newer)};
  EXPECT_EQ((*edns_of(answer(query)))->extended_rcode, 1) << "BADVERS";
  query.additional.push_back(query.additional[0]);
  EXPECT_EQ(answer(query).rcode, dns_rcode::format_error) << "two OPT records";
  query = question("broker", dns_type::a);
  query.response = true;
  EXPECT_FALSE(zone().answer(query));
}

TEST(Zone, WhatCannotBeReadIsAFormatErrorIfItHasAHeader) {
  const auto bytes = *encode_dns(question("broker", dns_type::a));
  const auto reply = format_error(bytes.substr(0, 15));
  ASSERT_TRUE(reply);
  const auto parsed = parse_dns(*reply);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, 99);
  EXPECT_EQ(parsed->rcode, dns_rcode::format_error);
  EXPECT_TRUE(parsed->response);
  EXPECT_FALSE(format_error(bytes.substr(0, 11)));
  EXPECT_FALSE(format_error(*reply)) << "answers to answers have no end";
}

}  // namespace
}  // namespace leafcutter::node::resolver
