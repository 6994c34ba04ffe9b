// As much HTTP/1.1 as the library's example services need: a single-threaded server, and a client with one deadline for
// the whole exchange. One request a connection unless the client asks to keep it, bodies with a Content-Length,
// addresses over IPv4.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "descriptor.hpp"

namespace library {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

struct Request {
  std::string method, path;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

struct Response {
  int status = 200;
  Json json;

  std::string text() const { return json.is_null() ? std::string() : json.dump(); }
};

using Handler = std::function<Response(const Request&)>;

namespace detail {

inline constexpr std::size_t largest_message = 1 << 20;

inline int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

inline bool wait_for(int fd, short events, Clock::time_point deadline) {
  pollfd entry{fd, events, 0};
  while (true) {
    const int left = milliseconds_until(deadline);
    const int n = ::poll(&entry, 1, left);
    if (n > 0) return true;
    if ((n == 0 && left == 0) || (n < 0 && errno != EINTR)) return false;
  }
}

inline bool send_all(int fd, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && errno == EAGAIN) {
      if (!wait_for(fd, POLLOUT, deadline)) return false;
    } else
      return false;
  }
  return true;
}

inline Descriptor listen_at(int port) {
  Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 64) != 0)
    throw std::runtime_error("port " + std::to_string(port) + ": " + std::strerror(errno));
  return listener;
}

/// The first line, headers and body of a message, once all of it is there. Throws std::runtime_error when it is no
/// HTTP.
struct Message {
  std::string first_line;
  std::map<std::string, std::string> headers;
  std::string body;
  std::size_t length = 0;  ///< of all of it, in bytes
};
inline std::optional<Message> parse(const std::string& bytes) {
  if (bytes.size() > largest_message) throw std::runtime_error("message too long");
  const auto head_end = bytes.find("\r\n\r\n");
  if (head_end == std::string::npos) return std::nullopt;
  Message message;
  std::size_t at = bytes.find("\r\n");
  message.first_line = bytes.substr(0, at);
  while (at < head_end) {
    const auto begin = at + 2;
    at = bytes.find("\r\n", begin);
    const auto line = bytes.substr(begin, at - begin);
    const auto colon = line.find(':');
    if (colon == std::string::npos) throw std::runtime_error("a header without a colon");
    auto name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto value = line.find_first_not_of(' ', colon + 1);
    message.headers[name] = value == std::string::npos ? "" : line.substr(value);
  }
  std::size_t length = 0;
  if (const auto found = message.headers.find("content-length"); found != message.headers.end()) {
    length = std::stoul(found->second);
    if (length > largest_message) throw std::runtime_error("body too long");
  }
  if (bytes.size() < head_end + 4 + length) return std::nullopt;
  message.body = bytes.substr(head_end + 4, length);
  message.length = head_end + 4 + length;
  return message;
}

inline bool keeps_connection(const Message& message) {
  const auto found = message.headers.find("connection");
  return found != message.headers.end() && found->second == "keep-alive";
}

inline Response handle(const Handler& handler, const Message& message) {
  const auto& line = message.first_line;
  const auto first = line.find(' '), second = line.find(' ', first + 1);
  if (second == std::string::npos) throw std::runtime_error("not a request line");
  return handler({line.substr(0, first), line.substr(first + 1, second - first - 1), message.headers, message.body});
}

/// Answers every request that has come whole. True when the connection is done with.
inline bool answer_requests(const Handler& handler, int fd, std::string& bytes) {
  while (true) {
    Response response;
    bool keep = false;
    try {
      const auto message = parse(bytes);
      if (!message) return false;
      bytes.erase(0, message->length);
      response = handle(handler, *message);
      keep = keeps_connection(*message);
    } catch (const std::exception& problem) {  // includes a body that is no JSON
      response = {400, {{"error", problem.what()}}};
    }
    const auto body = response.text();
    const auto text = "HTTP/1.1 " + std::to_string(response.status) + (response.status < 400 ? " OK" : " Refused") +
                      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\nConnection: " + (keep ? "keep-alive" : "close") + "\r\n\r\n" + body;
    if (!send_all(fd, text, Clock::now() + std::chrono::seconds(2)) || !keep) return true;
  }
}

}  // namespace detail

/// One thread, one request at a time, many connections: a client that says nothing keeps nobody else waiting.
class Server {
 public:
  using Handler = library::Handler;
  /// Called between requests, after the last one was answered; returns how long to wait at most for the next (-1: any
  /// time).
  using BetweenRequests = std::function<int()>;

  explicit Server(int port) : listener_(detail::listen_at(port)) {}

  [[noreturn]] void serve(
      const Handler& handler, const BetweenRequests& between = [] { return -1; }) {
    while (true) {
      int wait = between();
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const auto& connection : connections_) {
        entries.push_back({connection.socket.get(), POLLIN, 0});
        const int left = detail::milliseconds_until(connection.deadline);
        wait = wait < 0 ? left : std::min(wait, left);
      }
      if (::poll(entries.data(), entries.size(), wait) < 0 && errno != EINTR) throw std::runtime_error("poll failed");
      answer_one(handler, entries);
      if (entries[0].revents != 0) accept_one();
    }
  }

 private:
  static constexpr std::chrono::seconds longest_silence{10};

  struct Connection {
    Descriptor socket;
    std::string bytes;
    Clock::time_point deadline;
  };

  void accept_one() {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() >= 0) connections_.push_back({std::move(socket), {}, Clock::now() + longest_silence});
  }

  /// Reads what has come; answers at most one request, so that `between` runs after each.
  void answer_one(const Handler& handler, const std::vector<pollfd>& entries) {
    for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
      auto& connection = connections_[i];
      const bool readable = entries[i + 1].revents != 0;
      if (!readable && Clock::now() < connection.deadline) continue;
      if (readable && !read_some(connection)) {
        connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
      if (readable && !detail::answer_requests(handler, connection.socket.get(), connection.bytes)) {
        connection.deadline = Clock::now() + longest_silence;
        continue;
      }
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  static bool read_some(Connection& connection) {
    char buffer[16384];
    const auto n = ::recv(connection.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    connection.bytes.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  Descriptor listener_;
  std::vector<Connection> connections_;
};

/// Where a client dials: "broker:7002".
struct Endpoint {
  std::string host, port;

  static Endpoint parse(const std::string& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string::npos) throw std::runtime_error(text + ": expected HOST:PORT");
    return {text.substr(0, colon), text.substr(colon + 1)};
  }
};

/// A connection that does not block; no socket when there is none by then.
inline Descriptor dial(const Endpoint& to, Clock::time_point deadline) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found) != 0) return Descriptor();
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int connected = ::connect(socket.get(), found->ai_addr, found->ai_addrlen);
  const int problem = errno;
  ::freeaddrinfo(found);
  if (connected != 0) {
    int error = 0;
    socklen_t size = sizeof error;
    if (problem != EINPROGRESS || !detail::wait_for(socket.get(), POLLOUT, deadline) ||
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return Descriptor();
  }
  return socket;
}

/// A connection that carries one exchange after the other.
struct KeptConnection {
  Descriptor socket;  ///< none: there is no connection
  std::string bytes;  ///< read, and no whole response yet

  bool open() const { return socket.get() >= 0; }
  void close() {
    socket = Descriptor();
    bytes.clear();
  }
};

/// The next response on the connection. Nothing when it did not come whole by then; when that is because the connection
/// is lost, it is closed.
inline std::optional<Response> read_response(KeptConnection& connection, Clock::time_point deadline) try {
  char buffer[16384];
  while (true) {
    if (const auto message = detail::parse(connection.bytes)) {
      connection.bytes.erase(0, message->length);
      const auto space = message->first_line.find(' ');
      if (space == std::string::npos) throw std::runtime_error("not a status line");
      return Response{std::stoi(message->first_line.substr(space + 1)), Json::parse(message->body, nullptr, false)};
    }
    if (!detail::wait_for(connection.socket.get(), POLLIN, deadline)) return std::nullopt;
    const auto n = ::recv(connection.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) throw std::runtime_error("the connection is lost");
    connection.bytes.append(buffer, static_cast<std::size_t>(n));
  }
} catch (const std::exception&) {
  connection.close();
  return std::nullopt;
}

/// One exchange on a connection that is opened when there is none, and kept unless it is lost; nothing when the answer
/// did not come whole in `patience`, for whatever reason.
inline std::optional<Response> exchange(KeptConnection& connection, const Endpoint& to, const std::string& method,
                                        const std::string& path, const Json& json, std::chrono::milliseconds patience,
                                        const std::map<std::string, std::string>& headers = {}) {
  const auto deadline = Clock::now() + patience;
  if (!connection.open()) connection.socket = dial(to, deadline);
  if (!connection.open()) return std::nullopt;
  const auto body = json.is_null() ? std::string() : json.dump();
  auto text = method + " " + path + " HTTP/1.1\r\nHost: " + to.host + "\r\n";
  if (headers.count("Connection") == 0) text += "Connection: keep-alive\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  if (detail::send_all(connection.socket.get(), text, deadline)) return read_response(connection, deadline);
  connection.close();
  return std::nullopt;
}

/// The same on a connection of its own.
inline std::optional<Response> exchange(const Endpoint& to, const std::string& method, const std::string& path,
                                        const Json& json, std::chrono::milliseconds patience,
                                        std::map<std::string, std::string> headers = {}) {
  KeptConnection connection;
  headers["Connection"] = "close";
  return exchange(connection, to, method, path, json, patience, headers);
}

}  // namespace library
