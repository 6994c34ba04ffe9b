#include "protocols/dns_frames.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/protocols/dns_packets.hpp"

using namespace leafcutter::protocols;
using leafcutter::base::Stream;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The messages of `stream` when it arrives in pieces of the sizes that `piece` gives.
template <class Piece>
std::vector<std::string> split(DnsFrameReader& reader, std::string_view stream, Piece piece) {
  std::vector<std::string> messages;
  while (!stream.empty()) {
    auto arrived = stream.substr(0, piece());
    stream.remove_prefix(arrived.size());
    while (!arrived.empty()) {
      const auto taken = reader.feed(arrived);
      if (taken == 0 || taken > arrived.size()) throw std::logic_error("feed took " + std::to_string(taken));
      arrived.remove_prefix(taken);
      if (auto message = reader.take()) messages.push_back(std::move(*message));
    }
  }
  return messages;
}

TEST(DnsFrames, WhatHasComeOfAMessageCanBeHadBack) {
  const auto framed = *dns_frame("message");
  for (std::size_t come = 0; come < framed.size(); ++come) {
    DnsFrameReader reader;
    reader.feed(framed.substr(0, come));
    EXPECT_EQ(reader.partial(), framed.substr(0, come));
    EXPECT_EQ(reader.partial_bytes(), come);
    EXPECT_EQ(reader.partial(3), framed.substr(0, std::min<std::size_t>(come, 3)));
  }
}

}  // namespace

TEST(DnsFrames, AStreamIsTakenApartHoweverItIsCut) {
  auto expected = dns_packets::all();
  expected.push_back("");
  expected.push_back("x");
  expected.push_back(std::string(65535, 'x'));
  expected.push_back(std::string(256, 'y'));
  std::string stream;
  for (const auto& message : expected) stream += *dns_frame(message);
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{100}, stream.size()}) {
    DnsFrameReader reader;
    EXPECT_EQ(split(reader, stream, [&] { return size; }), expected) << size;
    EXPECT_TRUE(reader.finish().ok());
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Stream random(seed, "cuts", 0);
    DnsFrameReader reader;
    EXPECT_EQ(split(reader, stream, [&] { return random.below(300) + 1; }), expected) << seed;
  }
}

TEST(DnsFrames, OnePieceOfAStreamIsTakenMessageByMessage) {
  DnsFrameReader reader;
  const auto stream = *dns_frame("one") + *dns_frame("two");
  EXPECT_FALSE(reader.take().has_value());
  EXPECT_EQ(reader.feed(stream), 5u);
  EXPECT_EQ(reader.feed(std::string_view(stream).substr(5)), 0u) << "the first has not been taken";
  EXPECT_EQ(reader.take(), "one");
  EXPECT_FALSE(reader.take().has_value());
  EXPECT_EQ(reader.feed(std::string_view(stream).substr(5)), 5u);
  EXPECT_EQ(reader.take(), "two");
  EXPECT_EQ(reader.feed(""), 0u);
}

TEST(DnsFrames, AnEndInTheMiddleIsToldWithWhatIsMissing) {
  const auto stream = *dns_frame(std::string(300, 'x'));
  for (std::size_t size = 0; size <= stream.size(); ++size) {
    DnsFrameReader reader;
    split(reader, std::string_view(stream).substr(0, size), [] { return 7u; });
    const bool whole = size == 0 || size == stream.size();
    ASSERT_EQ(reader.finish().ok(), whole) << size;
    ASSERT_EQ(reader.in_message(), !whole) << size;
    if (size == 1) {
      EXPECT_THAT(reader.finish().error().message, HasSubstr("within the length"));
    } else if (!whole) {
      EXPECT_THAT(reader.finish().error().message, HasSubstr("of 300 bytes, after " + std::to_string(size - 2)));
    }
  }
}

TEST(DnsFrames, WhatDoesNotFitIsNotFramed) {
  EXPECT_EQ(dns_frame(std::string(65535, 'x'))->size(), 65537u);
  EXPECT_THAT(dns_frame(std::string(65536, 'x')).error().message, HasSubstr("65536 bytes"));
}
