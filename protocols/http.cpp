#include "protocols/http.hpp"

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>

#include "protocols/http_chunks.hpp"

namespace leafcutter::protocols {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

base::Error not_http(const std::string& what) { return {base::ErrorCode::protocol, "not HTTP/1: " + what, {}}; }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return lower(x) == lower(y);
  });
}

bool token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// Whether a start line may begin like this. Asked before the line is complete, so that a binary protocol on the port
/// is recognized by its first bytes instead of being held back until something looks like the end of a head.
bool plausible_start(std::string_view start, HttpReader::Role role) {
  if (role == HttpReader::Role::response) {
    const std::string_view version = "HTTP/1.";
    const auto common = std::min(start.size(), version.size());
    return start.substr(0, common) == version.substr(0, common);
  }
  constexpr std::size_t longest_method = 32;
  std::size_t i = 0;
  while (i < start.size() && token_char(start[i])) ++i;
  if (i > longest_method) return false;
  if (i == start.size()) return true;
  if (i == 0 || start[i] != ' ') return false;
  const auto rest = start.substr(i);
  return std::all_of(rest.begin(), rest.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\r'; });
}

}  // namespace

std::string_view HttpMessage::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (same_word(key, name)) return value;
  return {};
}

struct HttpReader::State {
  enum class Phase { head, length, chunks, to_end, complete };

  State(Role its_role, std::size_t limit) : role(its_role), body_limit(limit) {}

  Role role;
  std::size_t body_limit;
  bool head_response = false;
  Phase phase = Phase::head;
  std::string head;             ///< of the current message, as far as it has arrived
  std::size_t line = 0;         ///< where in `head` the current line begins
  std::uint64_t remaining = 0;  ///< body bytes still to come (phase length)
  ChunkDecoder chunks;
  HttpMessage message;

  base::Expected<std::size_t> feed_head(std::string_view bytes);
  base::Status parse_head();
  template <bool request>
  base::Status parse_with_beast();
  void keep(std::string_view body);
  base::Expected<std::size_t> feed_body(std::string_view bytes);
  void reset();
};

void HttpReader::State::reset() {
  phase = Phase::head;
  head.clear();
  line = 0;
  remaining = 0;
  chunks = {};
  message = {};
}

void HttpReader::State::keep(std::string_view body) {
  const auto room = body_limit - std::min(body_limit, message.body.size());
  message.body.append(body.substr(0, room));
  if (body.size() > room) message.body_truncated = true;
}

base::Expected<std::size_t> HttpReader::State::feed_head(std::string_view bytes) {
  std::size_t taken = 0;
  // Empty lines before a request are to be ignored (RFC 9112, section 2.2).
  if (role == Role::request && head.empty())
    while (taken < bytes.size() && (bytes[taken] == '\r' || bytes[taken] == '\n')) ++taken;
  while (taken < bytes.size() && phase == Phase::head) {
    const auto rest = bytes.substr(taken);
    const auto newline = rest.find('\n');
    const auto piece = rest.substr(0, newline == std::string_view::npos ? rest.size() : newline + 1);
    if (head.size() + piece.size() > http_head_limit)
      return not_http("a head of more than " + std::to_string(http_head_limit) + " bytes");
    head.append(piece);
    taken += piece.size();
    if (newline == std::string_view::npos) {
      if (line == 0 && !plausible_start(head, role)) return not_http("the first bytes are no start line");
      break;
    }
    if (head.size() - line < 2 || head[head.size() - 2] != '\r')
      return not_http("a line of the head does not end in CR LF");
    const auto text = std::string_view(head).substr(line, head.size() - line - 2);
    if (line == 0 && (!plausible_start(text, role) || text.find("HTTP/1.") == std::string_view::npos))
      return not_http("the first line is no start line");
    const bool last = text.empty();
    line = head.size();
    if (last)
      if (const auto parsed = parse_head(); !parsed) return parsed.error();
  }
  message.bytes += taken;
  return taken;
}

template <bool request>
base::Status HttpReader::State::parse_with_beast() {
  http::parser<request, http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(http_head_limit));
  // "No limit" cannot be said: in Boost 1.74 a length compares greater than an empty optional.
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  if constexpr (!request) parser.skip(head_response);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(head), error);
  if (error) return not_http(error.message());
  if (!parser.is_header_done()) return not_http("an incomplete head");
  const auto& parsed = parser.get();
  for (const auto& field : parsed)
    message.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  message.keep_alive = parser.keep_alive();
  if constexpr (request) {
    message.method = std::string(parsed.method_string());
    message.target = std::string(parsed.target());
    if (!parser.chunked() && !message.header("transfer-encoding").empty())
      return not_http("a request whose body ends nowhere (its last transfer coding is not chunked)");
  } else {
    message.status = parsed.result_int();
  }
  if (parser.is_done()) {
    phase = Phase::complete;
  } else if (parser.chunked()) {
    phase = Phase::chunks;
  } else if (const auto length = parser.content_length(); length && *length > 0) {
    phase = Phase::length;
    remaining = *length;
  } else {
    phase = request ? Phase::complete : Phase::to_end;
  }
  return base::ok();
}

base::Status HttpReader::State::parse_head() {
  const auto parsed = role == Role::request ? parse_with_beast<true>() : parse_with_beast<false>();
  if (!parsed) return parsed;
  // An interim response leaves the final one still to come.
  if (role == Role::response && message.status >= 200) head_response = false;
  head.clear();
  return parsed;
}

base::Expected<std::size_t> HttpReader::State::feed_body(std::string_view bytes) {
  std::size_t taken = bytes.size();
  if (phase == Phase::length) {
    taken = static_cast<std::size_t>(std::min<std::uint64_t>(remaining, bytes.size()));
    keep(bytes.substr(0, taken));
    remaining -= taken;
    if (remaining == 0) phase = Phase::complete;
  } else if (phase == Phase::chunks) {
    const auto used = chunks.feed(bytes, [this](std::string_view data) { keep(data); });
    if (!used) return used.error();
    taken = *used;
    if (chunks.complete()) phase = Phase::complete;
  } else {
    keep(bytes);
  }
  message.bytes += taken;
  return taken;
}

HttpReader::HttpReader(Role role, std::size_t body_limit) : state_(std::make_unique<State>(role, body_limit)) {}
HttpReader::HttpReader(HttpReader&&) noexcept = default;
HttpReader& HttpReader::operator=(HttpReader&&) noexcept = default;
HttpReader::~HttpReader() = default;

void HttpReader::expect_head_response() { state_->head_response = true; }

base::Expected<std::size_t> HttpReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  if (state_->phase == State::Phase::head) {
    const auto used = state_->feed_head(bytes);
    if (!used) return used;
    taken = *used;
  }
  using Phase = State::Phase;
  if (state_->phase != Phase::head && state_->phase != Phase::complete && taken < bytes.size()) {
    const auto used = state_->feed_body(bytes.substr(taken));
    if (!used) return used;
    taken += *used;
  }
  return taken;
}

base::Status HttpReader::finish() {
  if (state_->phase == State::Phase::to_end) state_->phase = State::Phase::complete;
  if (in_message()) return not_http("the stream ends within a message");
  return base::ok();
}

bool HttpReader::in_message() const {
  if (state_->phase == State::Phase::complete) return false;
  return state_->phase != State::Phase::head || !state_->head.empty();
}

const HttpMessage* HttpReader::head() const { return state_->phase == State::Phase::head ? nullptr : &state_->message; }

std::optional<HttpMessage> HttpReader::take() {
  if (state_->phase != State::Phase::complete) return std::nullopt;
  auto message = std::move(state_->message);
  state_->reset();
  return message;
}

std::string format_request(std::string_view method, std::string_view target, std::string_view host,
                           const std::vector<std::pair<std::string, std::string>>& headers, std::string_view body) {
  // A line break inside a value would begin a header of its own.
  const auto one_line = [](std::string_view text) {
    std::string line(text);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
    return line;
  };
  std::string request = one_line(method) + " " + one_line(target.empty() ? "/" : target) + " HTTP/1.1\r\n";
  bool has_host = false;
  std::string lines;
  for (const auto& [name, value] : headers) {
    if (same_word(name, "content-length") || same_word(name, "connection") || same_word(name, "transfer-encoding"))
      continue;
    if (same_word(name, "host")) has_host = true;
    lines += one_line(name) + ": " + one_line(value) + "\r\n";
  }
  if (!has_host) request += "Host: " + one_line(host) + "\r\n";
  request += lines;
  const bool bodiless =
      body.empty() && (method == "GET" || method == "HEAD" || method == "DELETE" || method == "OPTIONS");
  if (!bodiless) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  request += "Connection: close\r\n\r\n";
  request += body;
  return request;
}

}  // namespace leafcutter::protocols
