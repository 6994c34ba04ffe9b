#include "load.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"

namespace leafcutter::bench_proxy {
sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

namespace {

using base::UniqueFd;
using Clock = std::chrono::steady_clock;
constexpr std::size_t block = 256 << 10;
constexpr double longest_echo_s = 0.2;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(2);
}

UniqueFd bound(std::uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = loopback(0);
  socklen_t length = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) give_up("bind");
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  port = ntohs(address.sin_port);
  return fd;
}

UniqueFd dialled(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void swallow(int fd, std::vector<char>& buffer) {
  while (::recv(fd, buffer.data(), buffer.size(), 0) > 0) {
  }
  ::send(fd, "x", 1, MSG_NOSIGNAL);
  ::close(fd);
}

/// Echoes on one thread for all connections; one that swallows gets a thread.
[[noreturn]] void serve(int listener) {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {.fd = listener}};
  ::epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  std::vector<epoll_event> ready(256);
  std::vector<char> buffer(block);
  std::vector<bool> begun;
  for (;;) {
    const int count = ::epoll_wait(poll, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = ready[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        const int got = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (got < 0) continue;
        const int on = 1;
        ::setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (begun.size() <= static_cast<std::size_t>(got)) begun.resize(static_cast<std::size_t>(got) + 1);
        begun[static_cast<std::size_t>(got)] = false;
        epoll_event more{EPOLLIN, {.fd = got}};
        ::epoll_ctl(poll, EPOLL_CTL_ADD, got, &more);
        continue;
      }
      const auto bytes = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (bytes <= 0) {
        ::close(fd);
        continue;
      }
      if (!begun[static_cast<std::size_t>(fd)] && buffer[0] == 'S') {
        ::epoll_ctl(poll, EPOLL_CTL_DEL, fd, nullptr);
        std::thread([fd] {
          std::vector<char> room(block);
          swallow(fd, room);
        }).detach();
        continue;
      }
      begun[static_cast<std::size_t>(fd)] = true;
      ::send(fd, buffer.data(), static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
    }
  }
}

bool round_trip(int fd, std::vector<char>& bytes) {
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) return false;
  for (std::size_t got = 0; got < bytes.size();) {
    const auto count = ::recv(fd, bytes.data() + got, bytes.size() - got, 0);
    if (count <= 0) return false;
    got += static_cast<std::size_t>(count);
  }
  return true;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

std::uint16_t serve_upstream() {
  std::uint16_t port = 0;
  auto listener = bound(port);
  ::listen(listener.get(), 4096);
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(listener.get());
  }
  return port;
}

double bulk_megabytes_per_second(std::uint16_t port, std::uint64_t bytes) {
  auto fd = dialled(port);
  if (!fd) return 0;
  std::vector<char> buffer(block, 'S');
  const auto begin = Clock::now();
  for (std::uint64_t sent = 0; sent < bytes;) {
    const auto count = ::send(fd.get(), buffer.data(), std::min<std::uint64_t>(block, bytes - sent), MSG_NOSIGNAL);
    if (count <= 0) return 0;
    sent += static_cast<std::uint64_t>(count);
  }
  ::shutdown(fd.get(), SHUT_WR);
  char answer = 0;
  if (::recv(fd.get(), &answer, 1, 0) != 1) return 0;
  return static_cast<double>(bytes) / 1e6 / seconds_since(begin);
}

double connections_per_second(std::uint16_t port, int at_once, double seconds) {
  std::atomic<std::uint64_t> done{0};
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < at_once; ++i)
    threads.emplace_back([&] {
      std::vector<char> byte(1, 'E');
      while (seconds_since(begin) < seconds) {
        auto fd = dialled(port);
        if (fd && round_trip(fd.get(), byte)) ++done;
      }
    });
  for (auto& thread : threads) thread.join();
  return static_cast<double>(done) / seconds_since(begin);
}

double echo_median_us(std::uint16_t port, int rounds) {
  auto fd = dialled(port);
  if (!fd) return 0;
  std::vector<char> bytes(64, 'E');
  std::vector<double> times;
  const auto first = Clock::now();
  for (int i = 0; i < rounds && seconds_since(first) < longest_echo_s; ++i) {
    const auto begin = Clock::now();
    if (!round_trip(fd.get(), bytes)) return 0;
    times.push_back(seconds_since(begin) * 1e6);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

bool answers(std::uint16_t port) {
  auto fd = dialled(port);
  std::vector<char> byte(1, 'E');
  return fd && round_trip(fd.get(), byte);
}

std::uint16_t free_port() {
  std::uint16_t port = 0;
  bound(port);
  return port;
}

}  // namespace leafcutter::bench_proxy
