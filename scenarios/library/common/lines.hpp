// Lines over TCP, as much as the library's example services need: a single-threaded server that answers every line with
// a line, and a connection to one that blocks.
#pragma once

#include <fcntl.h>
#include <sys/time.h>

#include "http.hpp"

namespace library {

class LineServer {
 public:
  /// A line and its answer, both without their ends.
  using Handler = std::function<std::string(const std::string&)>;

  /// Who connects is told `greeting` first, unless it is empty.
  explicit LineServer(int port, const std::string& greeting = "")
      : listener_(detail::listen_at(port)), greeting_(greeting.empty() ? "" : greeting + "\n") {}

  [[noreturn]] void serve(const Handler& handler) {
    while (true) {
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const auto& connection : connections_) entries.push_back({connection.socket.get(), POLLIN, 0});
      if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) throw std::runtime_error("poll failed");
      for (std::size_t i = entries.size() - 1; i > 0; --i)
        if (entries[i].revents != 0 && !answer(handler, connections_[i - 1]))
          connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      if (entries[0].revents != 0) accept_one();
    }
  }

 private:
  struct Connection {
    Descriptor socket;
    std::string bytes;
  };

  void accept_one() {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() >= 0 && detail::send_all(socket.get(), greeting_, Clock::now() + std::chrono::seconds(2)))
      connections_.push_back({std::move(socket), {}});
  }

  /// False when the connection is done with.
  static bool answer(const Handler& handler, Connection& connection) {
    char buffer[4096];
    const auto n = ::recv(connection.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    connection.bytes.append(buffer, static_cast<std::size_t>(n));
    for (auto end = connection.bytes.find('\n'); end != std::string::npos; end = connection.bytes.find('\n')) {
      const auto reply = handler(connection.bytes.substr(0, end)) + "\n";
      connection.bytes.erase(0, end + 1);
      if (!detail::send_all(connection.socket.get(), reply, Clock::now() + std::chrono::seconds(2))) return false;
    }
    return n > 0 && connection.bytes.size() < detail::largest_message;
  }

  Descriptor listener_;
  std::string greeting_;
  std::vector<Connection> connections_;
};

/// A connection whose calls block, each for `patience` at most; no socket when nobody accepts.
inline Descriptor dial_blocking(const Endpoint& to, std::chrono::milliseconds patience) {
  auto socket = dial(to, Clock::now() + patience);
  if (socket.get() < 0) return socket;
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  const timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return socket;
}

/// The next line on a connection that carries one answer at a time, without its end; nothing when the connection ends,
/// fails or is silent for longer than it may be.
inline std::optional<std::string> read_line(int fd) {
  std::string line;
  char buffer[256];
  while (line.empty() || line.back() != '\n') {
    const auto n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    line.append(buffer, static_cast<std::size_t>(n));
  }
  line.pop_back();
  return line;
}

}  // namespace library
