#include "protocols/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "protocols/event.hpp"

using namespace leafcutter::protocols;
using testing::HasSubstr;

namespace {

Value header_map() { return {{"execution", "c0ffee/1/42#1"}, {"base", 3}, {"count", 2}, {"last", true}}; }

}  // namespace

TEST(BatchHeader, SurvivesARoundTrip) {
  const auto back = decode_batch_header(encode(BatchHeader{"c0ffee/1/42#1", 3, 2, true}));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->execution, "c0ffee/1/42#1");
  EXPECT_EQ(back->base, 3u);
  EXPECT_EQ(back->count, 2u);
  EXPECT_TRUE(back->last);
}

TEST(BatchHeader, ToleratesFieldsOfANewerVersion) {
  auto map = header_map();
  map["priority"] = 1;
  EXPECT_TRUE(decode_batch_header(pack(map)).ok());
}

TEST(BatchHeader, EveryFieldIsRequiredAndTyped) {
  EXPECT_TRUE(decode_batch_header(pack(header_map())).ok());
  const auto whole = header_map();
  for (const auto& [name, value] : whole.items()) {
    auto missing = header_map();
    missing.erase(name);
    EXPECT_FALSE(decode_batch_header(pack(missing)).ok()) << name;
    auto wrong = header_map();
    wrong[name] = Value::array();
    EXPECT_FALSE(decode_batch_header(pack(wrong)).ok()) << name;
  }
}

TEST(BatchHeader, ASumThatWrapsIsRefused) {
  auto map = header_map();
  map["base"] = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(decode_batch_header(pack(map)).error().message, HasSubstr("overflows"));
}

TEST(BatchHeader, OfAnUnreasonableSizeIsRefused) {
  auto map = header_map();
  map["execution"] = std::string(5000, 'x');
  EXPECT_THAT(decode_batch_header(pack(map)).error().message, HasSubstr("at most 4096"));
}

TEST(Ack, SurvivesARoundTripAndIsChecked) {
  const auto back = decode_ack(encode(Ack{"a/0/0#2", 17, true}));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->execution, "a/0/0#2");
  EXPECT_EQ(back->next, 17u);
  EXPECT_TRUE(back->complete);
  EXPECT_FALSE(decode_ack(encode(BatchHeader{"a/0/0#2", 1, 1, false})).ok());
  EXPECT_FALSE(decode_ack(pack(Value{{"execution", ""}, {"next", 1}, {"complete", true}})).ok());
}

TEST(Headers, MutatedBytesNeverDoHarm) {
  std::mt19937_64 rng(5);
  const auto whole = encode(BatchHeader{"c0ffee/1/42#1", 3, 2, true});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(decode_batch_header(std::string_view(whole).substr(0, size)).ok()) << size;
  }
  for (int round = 0; round < 5000; ++round) {
    auto bytes = whole;
    bytes[rng() % bytes.size()] = static_cast<char>(rng());
    if (const auto header = decode_batch_header(bytes)) {
      ASSERT_GE(header->base + header->count, header->base);
    }
    (void)decode_ack(bytes);
  }
}

TEST(Classify, SaysWhatAReceiverDoes) {
  EXPECT_EQ(classify({"x", 0, 5, false}, 0), Intake::store);
  EXPECT_EQ(classify({"x", 5, 5, false}, 5), Intake::store);
  EXPECT_EQ(classify({"x", 6, 5, false}, 5), Intake::gap);
  EXPECT_EQ(classify({"x", 0, 5, false}, 5), Intake::duplicate);
  EXPECT_EQ(classify({"x", 0, 5, false}, 9), Intake::duplicate);
  EXPECT_EQ(classify({"x", 3, 5, false}, 5), Intake::store_tail);
  EXPECT_EQ(classify({"x", 5, 0, true}, 5), Intake::store) << "an empty last batch still ends the execution";
  EXPECT_EQ(classify({"x", 5, 0, false}, 5), Intake::duplicate);
}
