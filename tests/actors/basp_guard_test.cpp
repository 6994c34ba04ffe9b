// What an admitted peer may say, byte by byte.
#include "actors/transport/basp_guard.hpp"

#include <gtest/gtest.h>

#include "tests/actors/basp_bytes.hpp"

using namespace leafcutter;
using actors::BaspGuard;
using tests::basp_message;
using tests::BaspHeader;

namespace {

constexpr std::uint64_t front_door = 77;
constexpr std::uint64_t response_flag = 1ull << 63;

BaspGuard guard(bool taken = false) {
  BaspGuard::Rules rules;
  rules.payload_at_most = 1000;
  rules.may_reach = [](std::uint64_t actor) { return actor == front_door; };
  rules.claim = [taken](std::string_view) -> base::Status {
    if (taken) return base::Error{base::ErrorCode::conflict, "taken"};
    return base::ok();
  };
  return BaspGuard(std::move(rules));
}

BaspGuard greeted() {
  auto out = guard();
  EXPECT_TRUE(out.take(BaspHeader{1, 0, 6}.bytes()).ok());
  EXPECT_TRUE(out.take("me-and").ok());
  return out;
}

std::string refusal_of(BaspGuard guarded, const BaspHeader& header, const std::string& payload = {}) {
  auto taken = guarded.take(header.bytes());
  if (taken && header.payload > 0) taken = guarded.take(payload);
  return taken ? "" : taken.error().message;
}

BaspHeader message_to(std::uint64_t actor, const std::string& payload) {
  return {2, 0, static_cast<std::uint32_t>(payload.size()), 0, 1, actor};
}

}  // namespace

TEST(BaspGuard, APeerGreetsAndTalks) {
  auto guarded = greeted();
  EXPECT_TRUE(guarded.greeted());
  const auto hello = basp_message("@<>+@atom+leafcutter::actors::NodeInfo+leafcutter::actors::node_actor", "xyz");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(guarded.take(message_to(front_door, hello).bytes()).ok());
    EXPECT_TRUE(guarded.take(hello).ok());
    EXPECT_TRUE(guarded.take(BaspHeader{6}.bytes()).ok());
  }
  EXPECT_EQ(refusal_of(greeted(), {4, 0, 9, 0, 0, 5}, "me-and-xx"), "");
  EXPECT_EQ(refusal_of(greeted(), {5, 0, 9, 0, 5, 0}, "me-and-xx"), "");
}

TEST(BaspGuard, TheHandshakeComesFirstAndKeepsItsName) {
  EXPECT_EQ(refusal_of(guard(), {6}), "no handshake to begin with");
  EXPECT_EQ(refusal_of(guard(), message_to(front_door, "x"), "x"), "no handshake to begin with");
  EXPECT_EQ(refusal_of(greeted(), {1, 0, 3}, "abc"), "a second handshake under another name");
  EXPECT_EQ(refusal_of(greeted(), {1, 2, 6}, "me-and"), "") << "as CAF repeats it";
  EXPECT_EQ(refusal_of(guard(), {1, 0, 0}), "a handshake of 0 bytes");
  EXPECT_EQ(refusal_of(guard(), {1, 0, 257}), "a handshake of 257 bytes");
  EXPECT_EQ(refusal_of(guard(true), {1, 0, 3}, "abc"), "taken");
}

TEST(BaspGuard, OnlyThePublishedActorIsReached) {
  const auto text = basp_message("@<>+@atom");
  EXPECT_EQ(refusal_of(greeted(), message_to(front_door, text), text), "");
  auto named = message_to(front_door, text);
  named.flags = 1;
  for (const auto& header : {message_to(front_door + 1, text), named}) {
    auto guarded = greeted();
    ASSERT_TRUE(guarded.take(header.bytes()).ok());
    EXPECT_FALSE(guarded.passes());
    EXPECT_EQ(guarded.next_bytes(), text.size());
    ASSERT_TRUE(guarded.take(text).ok());
    EXPECT_FALSE(guarded.passes());
    EXPECT_EQ(guarded.next_bytes(), BaspGuard::header_bytes);
    ASSERT_TRUE(guarded.take(message_to(front_door, text).bytes()).ok());
    EXPECT_TRUE(guarded.passes());
    ASSERT_TRUE(guarded.take(text).ok());
    EXPECT_TRUE(guarded.passes());
  }
  auto answer = message_to(front_door + 1, text);
  answer.data = response_flag | 12;
  EXPECT_EQ(refusal_of(greeted(), answer, text), "") << "whoever asked may be answered";
}

TEST(BaspGuard, NobodySpeaksForOthers) {
  EXPECT_EQ(refusal_of(greeted(), {3, 0, 9, 0, 1, front_door}, "me-and-xx"), "a message on behalf of somebody else");
  EXPECT_EQ(refusal_of(greeted(), {4, 0, 9, 0, 0, 5}, "you-and-x"), "a notice about an actor of somebody else");
  EXPECT_EQ(refusal_of(greeted(), {5, 0, 9, 0, 5, 0}, "you-and-x"), "a notice about an actor of somebody else");
  EXPECT_EQ(refusal_of(greeted(), {0, 0, 9}), "operation 0");
  EXPECT_EQ(refusal_of(greeted(), {7}), "operation 7");
}

TEST(BaspGuard, WhatIsAnnouncedIsBounded) {
  EXPECT_EQ(refusal_of(greeted(), {2, 0, 1001, 0, 1, front_door}), "a message of 1001 bytes; at most 1000 are taken");
  EXPECT_EQ(refusal_of(greeted(), {2, 0, 0xffffffff, 0, 1, front_door}),
            "a message of 4294967295 bytes; at most 1000 are taken");
  EXPECT_EQ(refusal_of(greeted(), {4, 0, 4097, 0, 0, 5}), "a notice of 4097 bytes");
  EXPECT_EQ(refusal_of(greeted(), {6, 0, 1}), "a heartbeat with a payload");
}

TEST(BaspGuard, MessagesOfCafItselfAreNotPassedOn) {
  const auto said = [](const std::string& types) {
    const auto text = basp_message(types);
    return refusal_of(greeted(), message_to(front_door, text), text);
  };
  for (const char* fine : {"@<>", "@<>+@atom", "@<>+@atom+@u64+@str+@timespan+bool",
                           "@<>+@atom+leafcutter::actors::Lease", "@<>+std::vector<leafcutter::actors::Lease>"})
    EXPECT_EQ(said(fine), "") << fine;
  for (const char* foul : {"@exit", "@down", "@atom+@strong_actor_ptr", "@weak_actor_ptr", "@actor", "@addr", "@group",
                           "@message", "@open_stream_msg", "@upstream_msg", "@timeout", "@leafcutter::x", ""})
    EXPECT_NE(said(std::string("@<>+") + foul), "") << foul;
  EXPECT_NE(said("exit"), "");
  EXPECT_EQ(refusal_of(greeted(), message_to(front_door, "\1abc"), "\1abc"),
            "a message with a way back through others");
  for (const auto& text : {std::string("\0\0\1\3@<>", 7), std::string("\0\0\0\x7f@<>", 7), std::string("\0\0", 2)})
    EXPECT_EQ(refusal_of(greeted(), message_to(front_door, text), text), "a message without types");
}
