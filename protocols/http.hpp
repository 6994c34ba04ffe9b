// HTTP/1.x message framing for a proxy that forwards bytes untouched: feed what arrives on one direction of a
// connection and learn where each message begins and ends and what it says. Boost.Beast parses; nothing here does I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::protocols {

struct HttpMessage {
  std::string method;   ///< requests only
  std::string target;   ///< requests only; path and query as sent
  unsigned status = 0;  ///< responses only
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  ///< decoded of chunking; at most `body_limit` bytes are kept
  bool body_truncated = false;
  bool keep_alive = true;
  std::size_t bytes = 0;  ///< length of the whole message on the wire

  /// The first header of that name, in any case; empty when there is none.
  std::string_view header(std::string_view name) const;
};

/// A longer head (start line and headers, or trailers) is an error.
inline constexpr std::size_t http_head_limit = 64 * 1024;

/// Parses one direction of a connection, message after message.
class HttpReader {
 public:
  enum class Role { request, response };
  explicit HttpReader(Role role, std::size_t body_limit = 64 * 1024);
  HttpReader(HttpReader&&) noexcept;
  HttpReader& operator=(HttpReader&&) noexcept;
  ~HttpReader();

  /// The next response answers a HEAD request (it has no body whatever its headers say).
  void expect_head_response();

  /// Consumes bytes up to the end of the current message at most; returns how many were taken. A finished message waits
  /// in `take`. Errors: protocol (not HTTP; the proxy then falls back to plain bytes).
  base::Expected<std::size_t> feed(std::string_view bytes);

  /// End of the stream: finishes a message that is delimited by it.
  base::Status finish();

  bool in_message() const;  ///< a message has begun and not ended

  /// The message whose head is complete and which has not been taken yet; its body may still be growing. Null: none.
  const HttpMessage* head() const;

  std::optional<HttpMessage> take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A request as a client writes it. `host` becomes the Host header; Content-Length is set; Connection: close.
std::string format_request(std::string_view method, std::string_view target, std::string_view host,
                           const std::vector<std::pair<std::string, std::string>>& headers, std::string_view body);

}  // namespace leafcutter::protocols
