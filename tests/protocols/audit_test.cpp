#include "protocols/audit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.hpp"
#include "base/random.hpp"

namespace leafcutter::protocols {
namespace {

using base::SigningKey;
using Flaw = AuditReport::Flaw;
using testing::HasSubstr;

const SigningKey& node_key() {
  static const auto key = *SigningKey::generate();
  return key;
}
const SigningKey& coordinator_key() {
  static const auto key = *SigningKey::generate();
  return key;
}

std::string frame_hash(const std::string& frame) { return read_frame(frame).frame.hash; }

std::vector<std::string> frames(std::size_t count, const SigningKey& key = node_key()) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) {
    AuditRecord record{
        .sequence = i, .time = 5, .node = "n1", .stage = "begin", .detail = key_statement(key.public_key())};
    if (i > 0) {
      record.stage = "outcome";
      record.id = "a" + std::to_string(i);
      record.detail = "detail";
      record.outcome = Outcome::success;
    }
    record.previous = i == 0 ? std::string(32, '\0') : frame_hash(out.back());
    out.push_back(seal_record(record, key));
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += part;
  return out;
}

AuditAnchor anchor_of(const std::vector<std::string>& parts, std::size_t sequence) {
  return {sequence, 7, "n1", frame_hash(parts[0]), frame_hash(parts[sequence])};
}

void expect_flaw(const AuditReport& report, Flaw flaw, std::uint64_t record, const std::string& why) {
  EXPECT_STREQ(flaw_name(report.flaw), flaw_name(flaw)) << report.why;
  EXPECT_EQ(report.record, record) << report.why;
  EXPECT_THAT(report.why, HasSubstr(why));
}

TEST(Audit, AnUntouchedLogVerifies) {
  const auto log = joined(frames(5));
  const auto report = verify_audit(log, {node_key().public_key(), "", {}});
  EXPECT_EQ(report.flaw, Flaw::none) << report.why;
  EXPECT_EQ(report.good, 5U);
  EXPECT_EQ(report.key, node_key().public_key());
  EXPECT_EQ(report.node, "n1");
  EXPECT_EQ(report.good_bytes, log.size());
  EXPECT_EQ(verify_audit(log).key, node_key().public_key());
  EXPECT_EQ(read_audit(log).size(), 5U);
}

/// Any byte, anywhere: the record it is in is named.
TEST(Audit, EveryChangedByteIsSeenWhereItIs) {
  const auto parts = frames(4);
  const auto log = joined(parts);
  std::size_t record = 0, end = parts[0].size();
  for (std::size_t at = 0; at < log.size(); ++at) {
    if (at == end) end += parts[++record].size();
    auto changed = log;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    const auto report = verify_audit(changed, {node_key().public_key(), "", {}});
    ASSERT_FALSE(report.intact()) << "byte " << at;
    ASSERT_EQ(report.record, record) << "byte " << at << ": " << report.why;
    ASSERT_EQ(report.flaw, Flaw::altered) << "byte " << at << ": " << report.why;
  }
}

TEST(Audit, OrderAndGapsAreTold) {
  const auto parts = frames(6);
  const AuditExpectation ours{node_key().public_key(), "", {}};
  auto swapped = parts;
  std::swap(swapped[2], swapped[3]);
  expect_flaw(verify_audit(joined(swapped), ours), Flaw::reordered, 2, "that one comes later");
  auto gap = parts;
  gap.erase(gap.begin() + 3);
  expect_flaw(verify_audit(joined(gap), ours), Flaw::removed, 3, "it is record 4, where record 3 should be");
  auto headless = parts;
  headless.erase(headless.begin());
  expect_flaw(verify_audit(joined(headless), ours), Flaw::removed, 0, "record 1");
  expect_flaw(verify_audit(joined(headless)), Flaw::removed, 0, "does not begin with the record that names its key");
  auto twice = parts;
  twice.insert(twice.begin() + 3, twice[2]);
  expect_flaw(verify_audit(joined(twice), ours), Flaw::reordered, 3, "it is record 2");
}

TEST(Audit, ARecordOfTheSameKeyInsteadOfAnotherIsSeen) {
  auto parts = frames(4);
  AuditRecord other{.sequence = 2, .node = "n1", .stage = "outcome", .outcome = Outcome::denied};
  other.previous = frame_hash(parts[1]);
  parts[2] = seal_record(other, node_key());
  expect_flaw(verify_audit(joined(parts)), Flaw::altered, 3, "after another record");
}

TEST(Audit, AnotherKeyIsNamed) {
  const auto theirs = joined(frames(3, coordinator_key()));
  expect_flaw(verify_audit(theirs, {node_key().public_key(), "", {}}), Flaw::wrong_key, 0,
              base::to_hex(coordinator_key().public_key()));
  EXPECT_TRUE(verify_audit(theirs).intact()) << "nobody said whose it should be";
}

/// A crash leaves a beginning of the last record, or zeros. Neither is tampering, and neither hides it.
TEST(Audit, ATornTailIsToldFromTampering) {
  const auto parts = frames(4);
  const auto whole = joined({parts[0], parts[1], parts[2]});
  for (std::size_t size = 1; size < parts[3].size(); ++size) {
    const auto report = verify_audit(whole + parts[3].substr(0, size));
    ASSERT_EQ(report.flaw, Flaw::torn) << size << ": " << report.why;
    ASSERT_EQ(report.good, 3U);
    ASSERT_EQ(report.good_bytes, whole.size());
  }
  expect_flaw(verify_audit(whole + std::string(100, '\0')), Flaw::torn, 3, "zeros");
  expect_flaw(verify_audit(whole + "LCA1 and then something else"), Flaw::altered, 3, "head is damaged");
  expect_flaw(verify_audit(whole + "x"), Flaw::altered, 3, "does not begin like a record");
  expect_flaw(verify_audit(""), Flaw::truncated, 0, "empty");
}

TEST(Audit, ALengthThatRunsPastTheEndHidesNothing) {
  auto parts = frames(4);
  auto& victim = parts[1];
  victim.replace(4, 4, std::string("\x00\x0f\x00\x00", 4));
  victim.replace(16, 4, base::from_hex(base::sha256(victim.substr(0, 16))).substr(0, 4));
  expect_flaw(verify_audit(joined(parts)), Flaw::altered, 1, "hides other records");
}

TEST(Audit, AnchorsShowWhatWasCutOff) {
  const auto parts = frames(6);
  const auto anchors =
      seal_anchor(anchor_of(parts, 2), coordinator_key()) + seal_anchor(anchor_of(parts, 4), coordinator_key());
  const AuditExpectation expectation{node_key().public_key(), anchors, coordinator_key().public_key()};
  const auto report = verify_audit(joined(parts), expectation);
  EXPECT_EQ(report.flaw, Flaw::none) << report.why;
  EXPECT_EQ(report.anchors, 2U);
  EXPECT_EQ(report.anchored, 5U);
  const std::vector<std::string> cut(parts.begin(), parts.begin() + 4);
  EXPECT_TRUE(verify_audit(joined(cut)).intact()) << "by itself a shorter log is a log";
  expect_flaw(verify_audit(joined(cut), expectation), Flaw::truncated, 4, "ends before record 4");
  expect_flaw(verify_audit(joined(cut) + parts[4].substr(0, 9), expectation), Flaw::truncated, 4, "ends before");
}

TEST(Audit, AnchorsShowALogThatWasWrittenAnew) {
  const auto parts = frames(4);
  auto anew = frames(4);
  AuditRecord other{.sequence = 3, .node = "n1", .stage = "outcome", .outcome = Outcome::denied};
  other.previous = frame_hash(anew[2]);
  anew[3] = seal_record(other, node_key());
  const AuditExpectation expectation{{}, seal_anchor(anchor_of(parts, 3), coordinator_key()), {}};
  expect_flaw(verify_audit(joined(anew), expectation), Flaw::altered, 3, "not the record that anchor 0 has seen");
  expect_flaw(verify_audit(joined(frames(4, coordinator_key())), expectation), Flaw::altered, 0, "another log");
}

TEST(Audit, AnchorsOfAnotherKeyCountForNothing) {
  const auto parts = frames(3);
  const auto forged = seal_anchor(anchor_of(parts, 2), node_key());
  expect_flaw(verify_audit(joined(parts), {{}, forged, coordinator_key().public_key()}), Flaw::wrong_key, 2,
              "anchor 0 is not signed by");
  const auto mixed = seal_anchor(anchor_of(parts, 1), coordinator_key()) + forged;
  expect_flaw(verify_audit(joined(parts), {{}, mixed, {}}), Flaw::wrong_key, 2, "anchor 1");
  EXPECT_EQ(read_frame(forged).kind, AuditPiece::Kind::garbage) << "an anchor is no record";
}

/// The boundary between two fields is signed: a value cannot move over it.
TEST(Audit, FieldsCannotRunIntoEachOther) {
  AuditRecord one{.sequence = 0, .owner = "ab", .id = "c", .previous = std::string(32, 'x')}, two = one;
  two.owner = "a";
  two.id = "bc";
  EXPECT_NE(read_frame(seal_record(one, node_key())).frame.payload,
            read_frame(seal_record(two, node_key())).frame.payload);
  const auto sealed = seal_record(one, node_key());
  EXPECT_EQ(*decode_record(read_frame(sealed).frame), one);
}

/// Whatever text goes with it, an outcome is read back as it was set.
TEST(Audit, NoTextChangesAnOutcome) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    base::Stream random(3, "audit-text", i);
    AuditRecord record{.sequence = i, .previous = std::string(32, '\0')};
    record.outcome = static_cast<Outcome>(random.below(6));
    static const std::vector<std::string> words = {
        "denied",    "success", "failure", "does not allow arguments", "|", "\n", std::string(1, '\0'),
        "timed-out", "lost",    "\xff"};
    for (auto n = random.below(12); n > 0; --n) record.detail += words[random.below(words.size())];
    const auto back = decode_record(read_frame(seal_record(record, node_key())).frame);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, record);
  }
}

TEST(Audit, ALongFieldIsCutAndSaysSo) {
  AuditRecord record{.sequence = 0, .detail = std::string(100'000, 'x'), .previous = std::string(32, '\0')};
  const auto sealed = seal_record(record, node_key());
  const auto back = decode_record(read_frame(sealed).frame);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->detail.size(), audit_field_bytes);
  EXPECT_TRUE(back->detail.ends_with(" (cut)"));
}

}  // namespace
}  // namespace leafcutter::protocols
