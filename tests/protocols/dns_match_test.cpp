#include "protocols/dns_match.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "tests/protocols/dns_packets.hpp"

using namespace leafcutter::protocols;
using dns_packets::name;
using testing::HasSubstr;

namespace {

std::string label(std::size_t size) { return std::string(size, 'x'); }

}  // namespace

TEST(DnsNames, TextAndWire) {
  struct Row {
    std::string text, wire, back;
  };
  const Row rows[] = {{".", std::string(1, '\0'), "."},
                      {"shop", std::string("\4shop\0", 6), "shop"},
                      {"Shop.Internal.", std::string("\4Shop\10Internal\0", 15), "Shop.Internal"},
                      {"a\\.b.c", std::string("\3a.b\1c\0", 7), "a\\.b.c"},
                      {"a\\\\b", std::string("\3a\\b\0", 5), "a\\\\b"},
                      {"a\\032b", std::string("\3a b\0", 5), "a\\032b"},
                      {"\\000\\255", std::string("\2\0\xff\0", 4), "\\000\\255"},
                      {"*.a", std::string("\1*\1a\0", 5), "*.a"}};
  for (const auto& row : rows) {
    EXPECT_EQ(name(row.text).wire(), row.wire) << row.text;
    EXPECT_EQ(name(row.text).text(), row.back);
    EXPECT_EQ(name(row.back), name(row.text));
    EXPECT_EQ(*DnsName::from_wire(row.wire), name(row.text));
  }
}

TEST(DnsNames, WhatIsNotANameIsRefusedWithWhatWouldDo) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "root is written `.`"},
      {"..", "empty"},
      {".a", "empty"},
      {"a..b", "empty"},
      {label(64), "64 bytes; at most 63"},
      {label(63) + "." + label(63) + "." + label(63) + "." + label(62), "256 bytes"},
      {"a b", "\\032"},
      {"b\xc3\xbc"
       "cher",
       "xn--"},
      {"a\\", "backslash"},
      {"a\\25", "three decimal digits"},
      {"a\\2x5", "three decimal digits"},
      {"a\\256", "at most \\255"}};
  for (const auto& [text, says] : rows) {
    const auto found = DnsName::from_text(text);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_EQ(found.error().code, leafcutter::base::ErrorCode::bad_input);
    EXPECT_THAT(found.error().message, HasSubstr(says));
  }
  EXPECT_EQ(name(label(63) + "." + label(63) + "." + label(63) + "." + label(61)).wire().size(), dns_name_limit);
}

TEST(DnsNames, WireFormsAreChecked) {
  for (const std::string& wire : {std::string(), std::string("\1a"), std::string("\1a\0\0", 4), std::string("\5a\0", 3),
                                  "\x40" + label(64) + std::string(1, '\0'), std::string("\xc0\x0c\0", 3)})
    EXPECT_FALSE(DnsName::from_wire(wire).ok());
}

TEST(DnsNames, CompareWithoutCaseAndByLabel) {
  EXPECT_TRUE(same_name(name("ShOp.eXample"), name("sHoP.ExamPLE")));
  EXPECT_FALSE(name("Shop") == name("shop"));
  EXPECT_FALSE(same_name(name("shop"), name("shop.example")));
  EXPECT_FALSE(same_name(name("a\\.b"), name("a.b")));
  EXPECT_FALSE(same_name(name("a["), name("a{"))) << "only letters have a case";
  EXPECT_TRUE(at_or_below(name("a.b.Example"), name("example")));
  EXPECT_TRUE(at_or_below(name("example"), name("example")));
  EXPECT_TRUE(at_or_below(name("example"), DnsName()));
  EXPECT_FALSE(at_or_below(name("notexample"), name("example")));
  EXPECT_FALSE(at_or_below(name("x\\007example"), name("example")))
      << "7 is a byte of the label, not the length of one";
  EXPECT_FALSE(at_or_below(name("example"), name("a.example")));
  EXPECT_FALSE(at_or_below(DnsName(), name("example")));
  EXPECT_EQ(name("a.b.c").parent(), name("b.c"));
  EXPECT_EQ(name("c").parent(), DnsName());
  EXPECT_EQ(DnsName().parent(), DnsName());
}

TEST(DnsMatching, PatternsOfNames) {
  struct Row {
    const char* pattern;
    std::vector<const char*> matched, others;
  };
  const Row rows[] = {
      {"redis.internal",
       {"redis.internal", "REDIS.Internal"},
       {"internal", "a.redis.internal", "redis.internal.x", "."}},
      {"redis.internal.", {"redis.internal"}, {"redis"}},
      {"redis", {"redis", "Redis"}, {"redis.internal", "."}},
      {"*.internal", {"a.internal", "A.b.INTERNAL", "*.internal"}, {"internal", "xinternal", "a.internal.x", "."}},
      {"*", {"a", "a.b", "."}, {}},
      {"*..", {"a", "a.b"}, {"."}},
      {".", {"."}, {"a"}},
      {"\\*.internal", {"*.internal"}, {"a.internal"}}};
  for (const auto& row : rows) {
    const auto pattern = DnsPattern::parse(row.pattern);
    ASSERT_TRUE(pattern.ok()) << row.pattern;
    const auto again = DnsPattern::parse(pattern->text());
    ASSERT_TRUE(again.ok()) << pattern->text();
    for (const auto* text : row.matched) {
      EXPECT_TRUE(pattern->matches(name(text))) << row.pattern << " and " << text;
      EXPECT_TRUE(again->matches(name(text))) << pattern->text() << " and " << text;
    }
    for (const auto* text : row.others) {
      EXPECT_FALSE(pattern->matches(name(text))) << row.pattern << " and " << text;
      EXPECT_FALSE(again->matches(name(text))) << pattern->text() << " and " << text;
    }
  }
}

TEST(DnsMatching, AStarElsewhereIsRefusedWithWhatWouldDo) {
  for (const auto* text : {"shop*.internal", "a.*.b", "a.*", "**", "*a", "*.*.a"}) {
    const auto pattern = DnsPattern::parse(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_THAT(pattern.error().message, HasSubstr("`*.internal`")) << text;
  }
  EXPECT_FALSE(DnsPattern::parse("").ok());
  EXPECT_FALSE(DnsPattern::parse("*.").ok());
}

TEST(DnsMatching, TypesByNameAndNumber) {
  const std::pair<const char*, std::uint16_t> rows[] = {
      {"A", 1},     {"aaaa", 28},   {"Mx", 15},   {"HTTPS", 65},        {"ANY", 255},
      {"TYPE1", 1}, {"type28", 28}, {"TYPE0", 0}, {"TYPE65280", 65280}, {"TYPE65535", 65535}};
  for (const auto& [text, number] : rows) {
    const auto found = dns_type_number(text);
    ASSERT_TRUE(found.ok()) << text;
    EXPECT_EQ(*found, number) << text;
  }
  // Every number has a name that leads back to it.
  for (std::uint32_t number = 0; number < 0x10000; ++number)
    ASSERT_EQ(*dns_type_number(dns_type_name(static_cast<std::uint16_t>(number))), number);
  EXPECT_EQ(dns_type_name(28), "AAAA");
  EXPECT_EQ(dns_type_name(65280), "TYPE65280");
  const std::pair<const char*, const char*> wrong[] = {
      {"AAA", "did you mean `AAAA`"}, {"CNAM", "did you mean `CNAME`"}, {"28", "written `TYPE28`"},
      {"", "TYPE0 to TYPE65535"},     {"TYPE65536", "TYPE65535"},       {"TYPE", "is not a type"},
      {"TYPE1x", "is not a type"},    {"TYPE-1", "is not a type"},      {"70000", "TYPE0 to TYPE65535"}};
  for (const auto& [text, says] : wrong) {
    ASSERT_FALSE(dns_type_number(text).ok()) << text;
    EXPECT_THAT(dns_type_number(text).error().message, HasSubstr(says));
  }
}

TEST(DnsMatching, Rcodes) {
  EXPECT_EQ(dns_rcode_name(0), "NOERROR");
  EXPECT_EQ(dns_rcode_name(3), "NXDOMAIN");
  EXPECT_EQ(dns_rcode_name(16), "BADVERS");
  EXPECT_EQ(dns_rcode_name(99), "RCODE99");
}

TEST(DnsMatching, NamesAndTypesTogether) {
  const auto match = DnsMatch::parse("*.internal", {"A", "TYPE65280"});
  ASSERT_TRUE(match.ok());
  EXPECT_TRUE(match->matches({name("a.INTERNAL"), dns_type::a}));
  EXPECT_TRUE(match->matches({name("a.internal"), 65280}));
  EXPECT_FALSE(match->matches({name("a.internal"), dns_type::aaaa}));
  EXPECT_FALSE(match->matches({name("a.internal"), dns_type::any}));
  EXPECT_FALSE(match->matches({name("internal"), dns_type::a}));
  EXPECT_TRUE(DnsMatch::parse("*", {})->matches({name("a"), dns_type::any}));
  EXPECT_THAT(DnsMatch::parse("*", {"A", "AAA"}).error().message, HasSubstr("`AAA`"));
  EXPECT_FALSE(DnsMatch::parse("a*", {}).ok());
}
