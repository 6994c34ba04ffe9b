// Who is on the roll, until when; names, tokens and messages of enrolment as values.
#include "actors/trust/roll.hpp"

#include <gtest/gtest.h>

#include "actors/trust/enrolment_message.hpp"
#include "actors/trust/join_token.hpp"
#include "tests/actors/authority.hpp"

using namespace leafcutter;
using actors::EnrolledKey;
using actors::Identity;
using actors::Role;
using actors::Roll;
using tests::berlin;

namespace {

const std::string key_a(64, 'a'), key_b(64, 'b'), key_c(64, 'c');
const Identity paris{Role::node, "paris"}, ops{Role::client, "berlin"};
constexpr std::int64_t noon = 1'000'000;
constexpr std::int64_t year = 365 * 86400;

Roll of_berlin() {
  Roll roll;
  EXPECT_TRUE(enrol(roll, berlin, key_a, noon, noon + year).ok());
  return roll;
}

bool admitted(const Roll& roll, const Identity& identity, const std::string& key, std::int64_t now = noon) {
  return actors::admit(roll, identity, key, now).ok();
}

}  // namespace

TEST(Identity, ReadsItsOwnUriAndNoOther) {
  for (const auto& identity : {berlin, ops, Identity{Role::coordinator, "a.b-c_d"}})
    EXPECT_EQ(*actors::identity_from_uri(actors::identity_uri(identity)), identity);
  for (const char* wrong : {"", "leafcutter:", "leafcutter:node", "leafcutter:node/", "leafcutter:boss/x",
                            "http://node/x", "leafcutter:node/a b", "leafcutter:node/../x", "leafcutter:node/-x",
                            "leafcutter:node/a/b", "LEAFCUTTER:node/a"})
    EXPECT_FALSE(actors::identity_from_uri(wrong).ok()) << wrong;
  EXPECT_FALSE(actors::identity_from_uri("leafcutter:node/" + std::string(65, 'x')).ok());
  EXPECT_FALSE(actors::identity_from_uri(std::string("leafcutter:node/a\0b", 19)).ok());
}

TEST(Roll, AdmitsAKeyAsItsOwnIdentityOnly) {
  const auto roll = of_berlin();
  EXPECT_TRUE(admitted(roll, berlin, key_a));
  EXPECT_FALSE(admitted(roll, paris, key_a));
  EXPECT_FALSE(admitted(roll, ops, key_a)) << "another role";
  EXPECT_FALSE(admitted(roll, berlin, key_b));
  EXPECT_FALSE(admitted(Roll{}, berlin, key_a));
  EXPECT_TRUE(admitted(roll, berlin, key_a, noon + year - 1));
  EXPECT_FALSE(admitted(roll, berlin, key_a, noon + year));
}

TEST(Roll, ANewKeyOfAHostRevokesItsOthersAndNobodyElses) {
  auto roll = of_berlin();
  ASSERT_TRUE(enrol(roll, ops, key_b, noon, noon + year).ok());
  ASSERT_TRUE(enrol(roll, berlin, key_c, noon + 1, noon + year).ok());
  EXPECT_FALSE(admitted(roll, berlin, key_a, noon + 2));
  EXPECT_TRUE(admitted(roll, berlin, key_c, noon + 2));
  EXPECT_TRUE(admitted(roll, ops, key_b, noon + 2));
  EXPECT_EQ(enrol(roll, paris, key_c, noon, noon + year).error().code, base::ErrorCode::conflict);
  EXPECT_FALSE(enrol(roll, berlin, key_a, noon + 3, noon + year).ok()) << "a revoked key does not come back";
}

TEST(Roll, ARotatedKeyStaysForItsOverlap) {
  auto roll = of_berlin();
  ASSERT_TRUE(rotate(roll, key_a, key_b, noon, noon + year, 100).ok());
  for (const auto& key : {key_a, key_b}) EXPECT_TRUE(admitted(roll, berlin, key, noon + 99));
  EXPECT_FALSE(admitted(roll, berlin, key_a, noon + 100));
  EXPECT_TRUE(admitted(roll, berlin, key_b, noon + 100));
  // Again, from the old one: it does not live longer by that.
  ASSERT_TRUE(rotate(roll, key_a, key_c, noon + 50, noon + year, 1000).ok());
  EXPECT_FALSE(admitted(roll, berlin, key_a, noon + 100));
  EXPECT_FALSE(rotate(roll, key_a, std::string(64, 'd'), noon + 100, noon + year, 100).ok());
  EXPECT_FALSE(rotate(roll, std::string(64, 'e'), std::string(64, 'd'), noon, noon + year, 100).ok());
  EXPECT_FALSE(rotate(roll, key_b, key_c, noon, noon + year, 100).ok());
}

TEST(Roll, OneKeyIsRevokedAndItIsClearWhich) {
  auto roll = of_berlin();
  ASSERT_TRUE(rotate(roll, key_a, key_b, noon, noon + year, 100).ok());
  ASSERT_TRUE(enrol(roll, paris, key_c, noon, noon + year).ok());
  const auto ambiguous = revoke(roll, "berlin", noon);
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_NE(ambiguous.error().message.find("2 keys"), std::string::npos) << ambiguous.error().message;
  EXPECT_NE(ambiguous.error().message.find("aaaaaaaa"), std::string::npos);
  EXPECT_FALSE(revoke(roll, "aaaaaaa", noon).ok()) << "seven digits are too few";
  const auto misspelt = revoke(roll, "pariss", noon);
  EXPECT_NE(misspelt.error().message.find("did you mean `paris`?"), std::string::npos) << misspelt.error().message;
  EXPECT_EQ(revoke(roll, "aaaaaaaa", noon)->key, key_a);
  EXPECT_FALSE(admitted(roll, berlin, key_a));
  EXPECT_TRUE(admitted(roll, berlin, key_b));
  EXPECT_EQ(revoke(roll, "berlin", noon)->key, key_b);
  EXPECT_FALSE(revoke(roll, "berlin", noon).ok());
  EXPECT_TRUE(admitted(roll, paris, key_c));
}

TEST(Roll, ATicketIsGoodOnceForQuarterOfAnHourAndForOneHost) {
  Roll roll;
  ASSERT_TRUE(add_ticket(roll, berlin, key_a, noon).ok());
  EXPECT_FALSE(redeem(roll, key_b, noon).ok());
  EXPECT_FALSE(redeem(roll, key_a, noon + 900).ok());
  EXPECT_EQ(*redeem(roll, key_a, noon + 899), berlin);
  EXPECT_FALSE(redeem(roll, key_a, noon + 1).ok()) << "twice";
  ASSERT_TRUE(add_ticket(roll, berlin, key_a, noon).ok());
  ASSERT_TRUE(add_ticket(roll, paris, key_b, noon).ok());
  ASSERT_TRUE(add_ticket(roll, berlin, key_c, noon).ok());
  EXPECT_FALSE(redeem(roll, key_a, noon).ok()) << "a later one for the same host";
  EXPECT_EQ(*redeem(roll, key_b, noon), paris);
  for (int i = 1; i < 1000; ++i)
    ASSERT_TRUE(add_ticket(roll, {Role::node, "n" + std::to_string(i)}, key_a, noon).ok()) << i;
  EXPECT_EQ(add_ticket(roll, paris, key_b, noon).error().code, base::ErrorCode::unavailable);
  EXPECT_TRUE(add_ticket(roll, paris, key_b, noon + 900).ok()) << "those of before are void";
  EXPECT_EQ(roll.tickets.size(), 1u);
}

TEST(Roll, SurvivesItsFile) {
  auto roll = of_berlin();
  ASSERT_TRUE(rotate(roll, key_a, key_b, noon, noon + year, 100).ok());
  ASSERT_TRUE(revoke(roll, key_a, noon).ok());
  ASSERT_TRUE(add_ticket(roll, ops, key_c, noon).ok());
  const auto text = to_json(roll);
  EXPECT_EQ(*actors::roll_from_json(text), roll);
  for (const char* wrong :
       {"", "[]", "{}", "null", R"({"format":2,"keys":[],"tickets":[]})", R"({"format":1,"keys":[{}],"tickets":[]})",
        R"({"format":1,"keys":[],"tickets":[7]})", R"({"format":"1","keys":[],"tickets":[]})"})
    EXPECT_FALSE(actors::roll_from_json(wrong).ok()) << wrong;
  EXPECT_FALSE(actors::roll_from_json(text.substr(0, text.size() / 2)).ok());
}

TEST(JoinToken, IsOneWordAndSaysNothingWhenItIsWrong) {
  const auto token = *actors::new_join_token(berlin, key_a);
  const auto text = to_text(token);
  EXPECT_EQ(text.find_first_of(" \t\n"), std::string::npos);
  const auto read = *actors::join_token_from(" " + text + "\n");
  EXPECT_EQ(read.identity, berlin);
  EXPECT_EQ(read.authority, key_a);
  EXPECT_EQ(read.hash(), token.hash());
  EXPECT_NE(token.hash(), actors::new_join_token(berlin, key_a)->hash());
  EXPECT_EQ(token.hash().find(token.secret), std::string::npos);
  for (const auto& wrong : {std::string(), text.substr(1), text.substr(0, text.size() - 1), text + ":", text + "0",
                            "x " + text, std::string("leafcutter-join-1:node:berlin::"), std::string(5000, ' ')}) {
    const auto refused = actors::join_token_from(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().message.find(token.secret.substr(0, 10)), std::string::npos);
  }
}

TEST(EnrolmentMessage, SurvivesItsWayAndIsBounded) {
  const actors::EnrolmentRequest request{"secret", "pem", 60};
  EXPECT_EQ(*actors::decode_enrolment_request(encode(request)), request);
  const actors::EnrolmentAnswer answer{"", "a", "b", "c"};
  EXPECT_EQ(*actors::decode_enrolment_answer(encode(answer)), answer);
  EXPECT_FALSE(actors::decode_enrolment_answer(encode(request)).ok());
  EXPECT_FALSE(actors::decode_enrolment_request(encode(answer)).ok());
  EXPECT_FALSE(actors::decode_enrolment_request(encode(actors::EnrolmentRequest{"", "", INT64_MAX})).ok());
  EXPECT_FALSE(actors::decode_enrolment_request("\x80").ok());
  const auto whole = actors::framed(encode(request));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto part = actors::unframed(whole.substr(0, cut));
    ASSERT_TRUE(part.ok());
    EXPECT_FALSE(part->has_value()) << cut;
  }
  EXPECT_EQ(**actors::unframed(whole), encode(request));
  EXPECT_FALSE(actors::unframed(std::string("\0\0\x40\1", 4)).ok()) << "longer than any";
}
