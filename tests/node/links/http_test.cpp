#include "protocols/http.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace leafcutter::protocols {
namespace {

using Role = HttpReader::Role;

struct Read {
  std::vector<HttpMessage> messages;
  bool failed = false;
  std::string error;
};

/// Feeds `bytes` in pieces that `next_size` chooses; every byte is offered until it is taken.
template <class NextSize>
Read read_all(Role role, std::string_view bytes, NextSize next_size, const std::vector<bool>& heads = {}) {
  Read result;
  HttpReader reader(role);
  const auto prepare = [&] {
    if (result.messages.size() < heads.size() && heads[result.messages.size()]) reader.expect_head_response();
  };
  prepare();
  while (!bytes.empty()) {
    auto piece = bytes.substr(0, std::max<std::size_t>(1, next_size()));
    bytes.remove_prefix(piece.size());
    while (!piece.empty()) {
      const auto taken = reader.feed(piece);
      if (!taken) {
        result.failed = true;
        result.error = taken.error().message;
        return result;
      }
      piece.remove_prefix(*taken);
      auto message = reader.take();
      if (!message && *taken == 0) {
        ADD_FAILURE() << "neither bytes taken nor a message finished";
        return result;
      }
      if (message) {
        result.messages.push_back(std::move(*message));
        prepare();
      }
    }
  }
  if (const auto finished = reader.finish(); !finished) {
    result.failed = true;
    result.error = finished.error().message;
  }
  if (auto message = reader.take()) result.messages.push_back(std::move(*message));
  return result;
}

Read read_whole(Role role, std::string_view bytes, const std::vector<bool>& heads = {}) {
  return read_all(
      role, bytes, [&] { return bytes.size(); }, heads);
}

std::string describe(const Read& read) {
  std::string text = read.failed ? "failed;" : "ok;";
  for (const auto& m : read.messages) {
    text += m.method + " " + m.target + " " + std::to_string(m.status) + " keep=" + (m.keep_alive ? "1" : "0") +
            " bytes=" + std::to_string(m.bytes) + " truncated=" + (m.body_truncated ? "1" : "0") + " body=[" + m.body +
            "]";
    for (const auto& [name, value] : m.headers) text += " " + name + "=" + value;
    text += ";";
  }
  return text;
}

const std::string requests =
    "GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"
    "POST /orders HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\nContent-Type: text/plain\r\n\r\nhello world"
    "\r\nPUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n6;ext=\"a;b\"\r\npedia \r\n0\r\nDigest: "
    "x\r\n\r\n"
    "POST /empty HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    "DELETE /d HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    "HEAD /last HTTP/1.1\r\nConnection: close\r\n\r\n";

const std::string responses =
    "HTTP/1.1 100 Continue\r\n\r\n"
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"  // answers a HEAD
    "HTTP/1.1 204 No Content\r\n\r\n"
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n"
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"
    "HTTP/1.0 503 Busy\r\n\r\nuntil the very end";
const std::vector<bool> response_heads = {false, false, true, false, false, false, false};

TEST(HttpReader, TellsRequestsApart) {
  const auto read = read_whole(Role::request, requests);
  ASSERT_FALSE(read.failed) << read.error;
  ASSERT_EQ(read.messages.size(), 6u);
  EXPECT_EQ(read.messages[0].method, "GET");
  EXPECT_EQ(read.messages[0].target, "/a?x=1");
  EXPECT_EQ(read.messages[0].header("HOST"), "h");
  EXPECT_EQ(read.messages[0].header("absent"), "");
  EXPECT_EQ(read.messages[1].body, "hello world");
  EXPECT_EQ(read.messages[2].body, "wikipedia ");
  EXPECT_EQ(read.messages[3].body, "");
  EXPECT_TRUE(read.messages[4].keep_alive);
  EXPECT_FALSE(read.messages[5].keep_alive);
  std::size_t total = 0;
  for (const auto& message : read.messages) total += message.bytes;
  EXPECT_EQ(total, requests.size());
}

TEST(HttpReader, TellsResponsesApart) {
  const auto read = read_whole(Role::response, responses, response_heads);
  ASSERT_FALSE(read.failed) << read.error;
  ASSERT_EQ(read.messages.size(), 7u);
  EXPECT_EQ(read.messages[0].status, 100u);
  EXPECT_EQ(read.messages[1].body, "hello");
  EXPECT_EQ(read.messages[2].body, "");
  EXPECT_EQ(read.messages[3].status, 204u);
  EXPECT_EQ(read.messages[4].status, 304u);
  EXPECT_EQ(read.messages[5].body, "0123456789");
  EXPECT_EQ(read.messages[6].body, "until the very end");
  EXPECT_FALSE(read.messages[6].keep_alive);
}

TEST(HttpReader, AnyCutOfTheBytesGivesTheSameMessages) {
  const auto whole_requests = describe(read_whole(Role::request, requests));
  const auto whole_responses = describe(read_whole(Role::response, responses, response_heads));
  EXPECT_EQ(describe(read_all(Role::request, requests, [] { return std::size_t{1}; })), whole_requests);
  EXPECT_EQ(describe(read_all(
                Role::response, responses, [] { return std::size_t{1}; }, response_heads)),
            whole_responses);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    base::Stream draws(seed, "cuts", 0);
    const auto widest = 1 + draws.below(60);
    const auto size = [&] { return static_cast<std::size_t>(1 + draws.below(widest)); };
    ASSERT_EQ(describe(read_all(Role::request, requests, size)), whole_requests) << "seed " << seed;
    ASSERT_EQ(describe(read_all(Role::response, responses, size, response_heads)), whole_responses) << "seed " << seed;
  }
}

TEST(HttpReader, BrokenBytesEndAlikeWhereverTheyAreCut) {
  // One byte of a good stream is replaced; whole or byte by byte, the same messages come out before the same verdict.
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    base::Stream draws(seed, "damage", 0);
    auto bytes = requests;
    bytes[draws.below(bytes.size())] = static_cast<char>(draws.below(256));
    const auto whole = read_whole(Role::request, bytes);
    const auto single = read_all(Role::request, bytes, [] { return std::size_t{1}; });
    ASSERT_EQ(describe(whole), describe(single)) << "seed " << seed;
  }
}

TEST(HttpReader, GarbageIsAnErrorAndNeverMore) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Stream draws(seed, "garbage", 0);
    std::string bytes(draws.below(300), '\0');
    for (auto& byte : bytes) byte = static_cast<char>(draws.below(256));
    for (const auto role : {Role::request, Role::response}) {
      const auto read = read_all(role, bytes, [&] { return static_cast<std::size_t>(1 + draws.below(20)); });
      EXPECT_TRUE(read.messages.empty());
    }
  }
}

TEST(HttpReader, RecognizesOtherProtocolsByTheirFirstBytes) {
  // None of these contains an end of a head: they must be told from HTTP without waiting for one.
  for (const std::string start :
       {"PING\r\n", "*1\r\n$4\r\n", "\x16\x03\x01\x02", "EHLO me\r\n", "PRI * HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.1\nHost: h\n", "GET \x01/", "SSH-2.0-OpenSSH_9\r\n"}) {
    HttpReader reader(Role::request);
    EXPECT_FALSE(reader.feed(start).ok()) << start;
  }
  for (const std::string start : {"+OK", "220 mail", "HTTQ", "HTTP/2"}) {
    HttpReader reader(Role::response);
    EXPECT_FALSE(reader.feed(start).ok()) << start;
  }
  HttpReader reader(Role::request);
  EXPECT_TRUE(reader.feed("GET /slow").ok());
  EXPECT_TRUE(reader.in_message());
}

TEST(HttpReader, BoundsWhatItKeeps) {
  {
    HttpReader reader(Role::request);
    const auto endless = reader.feed("GET / HTTP/1.1\r\nX: " + std::string(http_head_limit, 'a'));
    EXPECT_FALSE(endless.ok());
  }
  {
    HttpReader reader(Role::request);
    EXPECT_TRUE(reader.feed("GET / HTTP/1.1\r\nX: " + std::string(http_head_limit - 100, 'a') + "\r\n\r\n").ok());
    EXPECT_TRUE(reader.take().has_value());
  }
  {
    HttpReader reader(Role::request, 10);
    EXPECT_TRUE(reader.feed("POST / HTTP/1.1\r\nContent-Length: 30\r\n\r\n" + std::string(30, 'b')).ok());
    const auto message = reader.take();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->body, std::string(10, 'b'));
    EXPECT_TRUE(message->body_truncated);
  }
  {
    HttpReader reader(Role::request);
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_TRUE(reader.feed(head).ok());
    EXPECT_FALSE(reader.feed("1;" + std::string(70 * 1024, 'e')).ok());
  }
}

TEST(HttpReader, RefusesFramingThatCouldBeReadInTwoWays) {
  for (const std::string headers :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: -1\r\n", "Transfer-Encoding: gzip\r\n", "Content-Length: 5x\r\n"}) {
    HttpReader reader(Role::request);
    EXPECT_FALSE(reader.feed("POST / HTTP/1.1\r\n" + headers + "\r\n").ok()) << headers;
  }
  for (const std::string chunk : {"\r\n", "x\r\n", "3\r\nabcd\r\n", "3\nabc", "ffffffffffffffff\r\n", "0\r\nX\n\r\n"}) {
    HttpReader reader(Role::request);
    ASSERT_TRUE(reader.feed("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").ok());
    EXPECT_FALSE(reader.feed(chunk).ok()) << chunk;
  }
}

TEST(HttpReader, ShowsTheHeadBeforeTheBodyIsThere) {
  HttpReader reader(Role::request);
  ASSERT_TRUE(reader.feed("POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r").ok());
  EXPECT_EQ(reader.head(), nullptr);
  ASSERT_TRUE(reader.feed("\nab").ok());
  ASSERT_NE(reader.head(), nullptr);
  EXPECT_EQ(reader.head()->target, "/x");
  EXPECT_FALSE(reader.take().has_value());
  EXPECT_FALSE(reader.finish().ok());
  const auto taken = reader.feed("cdGET");
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(*taken, 2u);
  EXPECT_EQ(reader.take()->body, "abcd");
  EXPECT_EQ(reader.head(), nullptr);
}

TEST(FormatRequest, WritesWhatAReaderReads) {
  const auto bytes = format_request("POST", "/orders", "shop:7001",
                                    {{"X-Trace", "a\r\nInjected: yes"}, {"content-length", "999"}}, "{\"id\":1}");
  const auto read = read_whole(Role::request, bytes);
  ASSERT_FALSE(read.failed) << read.error;
  ASSERT_EQ(read.messages.size(), 1u);
  const auto& message = read.messages[0];
  EXPECT_EQ(message.method, "POST");
  EXPECT_EQ(message.header("Host"), "shop:7001");
  EXPECT_EQ(message.header("Content-Length"), "8");
  EXPECT_EQ(message.header("Injected"), "");
  EXPECT_EQ(message.body, "{\"id\":1}");
  EXPECT_FALSE(message.keep_alive);
  EXPECT_EQ(format_request("GET", "/", "h", {}, "").find("Content-Length"), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::protocols
