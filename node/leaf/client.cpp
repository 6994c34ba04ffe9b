#include "node/leaf/client.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "node/leaf/network.hpp"

namespace leafcutter::node {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t reply_limit = 4u << 20;

base::Error failed(const std::string& what, const error_code& error) {
  if (error == beast::error::timeout)
    return {base::ErrorCode::timeout, what + ": no answer within the time allowed", {}};
  const bool protocol = error.category() == http::make_error_code(http::error::bad_version).category();
  return {protocol ? base::ErrorCode::protocol : base::ErrorCode::io, what + ": " + error.message(), {}};
}

/// A stream whose operations run to their end before they return; the deadline covers all of them.
class Conversation {
 public:
  explicit Conversation(Deadline deadline) : stream_(io_) { stream_.expires_at(deadline); }

  error_code connect(const Endpoints& endpoints) {
    error_code result = asio::error::host_not_found;
    stream_.async_connect(endpoints, [&](const error_code& error, const auto&) { result = error; });
    run();
    return result;
  }

  template <class Start>
  error_code perform(Start start) {
    error_code result = asio::error::operation_aborted;
    start(stream_, [&](const error_code& error, std::size_t bytes) {
      result = error;
      bytes_ = bytes;
    });
    run();
    return result;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void run() {
    io_.run();
    io_.restart();
  }
  asio::io_context io_{1};
  beast::tcp_stream stream_;
  std::size_t bytes_ = 0;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

base::Expected<HttpReply> http_call(const Endpoints& endpoints, const HttpCall& call, Deadline deadline) {
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(call.method);
  request.target(call.target);
  request.set(http::field::host, call.host);
  request.set(http::field::connection, "close");
  for (const auto& [name, value] : call.headers) request.set(name, value);
  request.body() = call.body;
  if (!call.body.empty() || (call.method != "GET" && call.method != "HEAD")) request.content_length(call.body.size());

  Conversation conversation(deadline);
  if (const auto error = conversation.connect(endpoints)) return failed("connect", error);
  if (const auto error =
          conversation.perform([&](auto& stream, auto handler) { http::async_write(stream, request, handler); }))
    return failed("send the request", error);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(reply_limit);
  parser.skip(call.method == "HEAD");
  if (const auto error =
          conversation.perform([&](auto& stream, auto handler) { http::async_read(stream, buffer, parser, handler); }))
    return failed("read the reply", error);
  HttpReply reply;
  auto response = parser.release();
  reply.status = response.result_int();
  for (const auto& field : response)
    reply.headers[lower({field.name_string().data(), field.name_string().size()})] = std::string(field.value());
  reply.body = std::move(response.body());
  return reply;
}

base::Expected<std::string> tcp_exchange(const Endpoints& endpoints, const std::string& send, const std::string& until,
                                         Deadline deadline) {
  const RE2 pattern(until, RE2::Quiet);
  if (!pattern.ok()) return base::Error{base::ErrorCode::bad_input, "until: " + pattern.error(), {}};
  Conversation conversation(deadline);
  if (const auto error = conversation.connect(endpoints)) return failed("connect", error);
  if (const auto error = conversation.perform(
          [&](auto& stream, auto handler) { asio::async_write(stream, asio::buffer(send), handler); }))
    return failed("send", error);
  std::string reply;
  std::array<char, 16384> buffer{};
  while (reply.size() < reply_limit) {
    const auto error = conversation.perform(
        [&](auto& stream, auto handler) { stream.async_read_some(asio::buffer(buffer), handler); });
    reply.append(buffer.data(), conversation.bytes());
    if (!until.empty() && RE2::PartialMatch(reply, pattern)) return reply;
    if (error == asio::error::eof && until.empty()) return reply;
    if (error == beast::error::timeout && until.empty() && !reply.empty()) return reply;
    if (error) return failed(reply.empty() ? "read the reply" : "read the rest of the reply", error);
  }
  return base::Error{base::ErrorCode::protocol, "the reply is longer than 4 MiB", {}};
}

base::Status tcp_connect(const Endpoints& endpoints, Deadline deadline) {
  Conversation conversation(deadline);
  if (const auto error = conversation.connect(endpoints)) return failed("connect", error);
  return base::ok();
}

Endpoints local_endpoints(const std::string& address, std::uint16_t port) {
  return {{asio::ip::make_address("127.0.0.1"), port},
          {asio::ip::make_address(address), port},
          {asio::ip::make_address("::1"), port},
          {asio::ip::make_address(ipv6_address(address)), port}};
}

}  // namespace leafcutter::node
