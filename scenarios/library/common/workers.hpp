// A server of the library's example services with as many threads as it was told, its workers. Each takes one request
// at a time, on a connection of its own; more requests than there are workers wait.
#pragma once

#include <thread>

#include "http.hpp"

namespace library {

class Workers {
 public:
  Workers(int port, int count) : listener_(detail::listen_at(port)), count_(count) {}

  [[noreturn]] void serve(const Handler& handler) {
    std::vector<std::thread> others;
    for (int i = 1; i < count_; ++i) others.emplace_back([&] { work(handler); });
    work(handler);
  }

 private:
  [[noreturn]] void work(const Handler& handler) const {
    while (true) {
      const Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.get() >= 0) answer(handler, socket.get());
    }
  }

  static void answer(const Handler& handler, int socket) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    std::string bytes;
    char buffer[16384];
    while (detail::wait_for(socket, POLLIN, deadline)) {
      const auto n = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return;
      bytes.append(buffer, static_cast<std::size_t>(n));
      if (detail::answer_requests(handler, socket, bytes)) return;
    }
  }

  Descriptor listener_;
  int count_;
};

}  // namespace library
