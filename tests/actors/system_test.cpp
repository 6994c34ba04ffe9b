#include "actors/system.hpp"

#include <gtest/gtest.h>

using namespace leafcutter;
using actors::parse_host_port;
using actors::require_loopback;

TEST(HostPort, IsReadFromWhatPeopleWrite) {
  const auto read = [](const char* text) {
    const auto address = parse_host_port(text);
    return address ? address->host + "|" + std::to_string(address->port) : "refused";
  };
  EXPECT_EQ(read("127.0.0.1:4730"), "127.0.0.1|4730");
  EXPECT_EQ(read("localhost:0"), "localhost|0");
  EXPECT_EQ(read("[::1]:65535"), "::1|65535");
  for (const char* wrong :
       {"", ":1", "host", "host:", "host:x", "host:65536", "host:-1", "::1:4730", "[::1]", "host:80 "}) {
    EXPECT_EQ(read(wrong), "refused") << wrong;
    EXPECT_EQ(parse_host_port(wrong).error().code, base::ErrorCode::bad_input);
  }
}

TEST(HostPort, OnlyLoopbackNeedsNoKeys) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "::1"})
    EXPECT_TRUE(require_loopback({host, 1}).ok()) << host;
  for (const char* host : {"0.0.0.0", "*", "10.0.0.1", "::", "127.example.org", "localhost.example.org"}) {
    const auto refused = require_loopback({host, 1});
    ASSERT_FALSE(refused.ok()) << host;
    EXPECT_EQ(refused.error().code, base::ErrorCode::bad_input);
  }
}
