// The engine alone: how exact its delays and its rates of datagrams are, what idle connections and links cost, what a
// link holds for a reader that stops, how fast faults are removed from stuck clients. Prints a table for each.
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "load.hpp"
#include "node/proxy/engine.hpp"
#include "tests/support/pace.hpp"

namespace {

namespace proxy = leafcutter::node::proxy;
namespace bench = leafcutter::bench_proxy;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

double ms(proxy::Duration span) { return std::chrono::duration<double, std::milli>(span).count(); }

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(::getpagesize()) / 1e6;
}

double cpu_ms() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

std::unique_ptr<proxy::Engine> engine() {
  auto started = proxy::Engine::start({});
  if (!started) std::exit(2);
  return std::move(*started);
}

std::uint16_t link(proxy::Engine& to, const std::string& name, std::uint16_t upstream,
                   std::vector<proxy::Fault> faults = {}) {
  proxy::LinkConfig config;
  config.name = name;
  config.listen = "127.0.0.1:0";
  config.upstream = "127.0.0.1:" + std::to_string(upstream);
  config.faults.faults = std::move(faults);
  const auto added = to.add_link(std::move(config));
  if (!added) {
    std::fprintf(stderr, "%s\n", added.error().text().c_str());
    std::exit(2);
  }
  return static_cast<std::uint16_t>(std::stoi(added->substr(added->rfind(':') + 1)));
}

int dial(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  std::perror("connect");
  std::exit(2);
}

bool until(const std::function<bool()>& done) {
  for (const auto limit = Clock::now() + 60s; !done();) {
    if (Clock::now() > limit) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

double ms(const timespec& time) {
  return static_cast<double>(time.tv_sec % 1'000'000) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// The next byte, or the report on one that was sent (MSG_ERRQUEUE), and the kernel's word for when.
std::optional<double> stamped(int fd, int flags) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[256];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto count = ::recvmsg(fd, &message, flags);
  if (count < 0 || (count == 0 && (flags & MSG_ERRQUEUE) == 0)) return std::nullopt;
  for (auto* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one))
    if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPING) {
      timespec at{};
      std::memcpy(&at, CMSG_DATA(one), sizeof at);
      return ms(at);
    }
  std::fprintf(stderr, "the kernel does not say when bytes came or went\n");
  std::exit(2);
}

void stamp(int fd, unsigned what) {
  const unsigned flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY | what;
  if (::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) != 0) std::exit(2);
}

/// Sends a byte and says when it went.
double sent_at(int fd) {
  if (::send(fd, "m", 1, MSG_NOSIGNAL) != 1) std::exit(2);
  for (;;) {
    if (const auto at = stamped(fd, MSG_ERRQUEUE | MSG_DONTWAIT)) return *at;
    pollfd report{fd, 0, 0};
    if (::poll(&report, 1, 10'000) != 1) std::exit(2);
  }
}

int listening(std::uint16_t& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(fd, 8) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    std::exit(2);
  port = ntohs(address.sin_port);
  return fd;
}

/// The engine's own error: from when the kernel sends the upstream's byte to when it has it at the client's socket.
/// When those two get a processor does not count. With `beside`, that many others stream through the same thread.
void delays(std::uint16_t bulk_upstream, int beside) {
  constexpr int messages = 600;
  for (const auto latency : {1ms, 10ms, 100ms, 1000ms}) {
    std::uint16_t port = 0;
    const int listener = listening(port);
    const auto one = engine();
    const auto through =
        link(*one, "l", port, {{"", {proxy::Flow::to_client}, proxy::Latency{proxy::FixedTime{latency}}}});
    const auto bulk = link(*one, "bulk", bulk_upstream);
    const int fd = dial(through);
    stamp(fd, SOF_TIMESTAMPING_RX_SOFTWARE);
    std::atomic<bool> over{false};
    std::vector<std::thread> streams;
    for (int i = 0; i < beside; ++i)
      streams.emplace_back([&] {
        while (!over) bench::bulk_megabytes_per_second(bulk, 64 << 20);
      });
    std::vector<double> sent, errors, late;
    std::thread sender([&] {
      const int to = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      stamp(to, SOF_TIMESTAMPING_TX_SOFTWARE);
      while (sent.size() < messages) {
        const auto before = Clock::now();
        ::poll(nullptr, 0, 5);  // one after the other
        late.push_back(ms(Clock::now() - before - 5ms));
        sent.push_back(sent_at(to));
      }
      ::close(to);
    });
    while (const auto at = stamped(fd, 0)) errors.push_back(*at - ms(latency));
    over = true;
    sender.join();
    for (auto& stream : streams) stream.join();
    ::close(fd);
    ::close(listener);
    if (errors.size() != messages) {
      std::fprintf(stderr, "%zu of %d messages came\n", errors.size(), messages);
      std::exit(2);
    }
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] -= sent[i];
    std::sort(errors.begin(), errors.end());
    std::sort(late.begin(), late.end());
    std::printf("| %lld ms | %d | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f |\n", static_cast<long long>(latency.count()),
                beside, errors.front(), errors[errors.size() / 2], errors[errors.size() * 9 / 10],
                errors[errors.size() * 99 / 100], errors.back(), late[late.size() * 99 / 100]);
  }
}

/// One message at a time, so that nothing but its own timer wakes the engine for it.
void lone_delays() {
  std::printf(
      "\n| latency, one message at a time | messages | least error ms | p50 | p90 | p99 | most |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const auto& [latency, messages] : {std::pair{1ms, 300}, {10ms, 200}, {100ms, 100}, {1000ms, 10}}) {
    std::uint16_t port = 0;
    const int listener = listening(port);
    const auto one = engine();
    const auto through =
        link(*one, "l", port, {{"", {proxy::Flow::to_client}, proxy::Latency{proxy::FixedTime{latency}}}});
    const int fd = dial(through);
    stamp(fd, SOF_TIMESTAMPING_RX_SOFTWARE);
    const int from = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    stamp(from, SOF_TIMESTAMPING_TX_SOFTWARE);
    std::vector<double> errors;
    for (int i = 0; i < messages; ++i) {
      const auto sent = sent_at(from);
      const auto came = stamped(fd, 0);
      if (!came) std::exit(2);
      errors.push_back(*came - sent - ms(latency));
    }
    ::close(from);
    ::close(fd);
    ::close(listener);
    std::sort(errors.begin(), errors.end());
    std::printf("| %lld ms | %d | %.3f | %.3f | %.3f | %.3f | %.3f |\n", static_cast<long long>(latency.count()),
                messages, errors.front(), errors[errors.size() / 2], errors[errors.size() * 9 / 10],
                errors[errors.size() * 99 / 100], errors.back());
  }
}

/// What a UDP link sends on in a second while a quarter more comes than its bandwidth says; without one, as much as
/// the machine can.
void datagram_rate(std::uint64_t rate, std::size_t size) {
  const int sink = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
            from = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto address = bench::loopback(0);
  socklen_t length = sizeof address;
  if (::bind(sink, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(sink, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    std::exit(2);
  const auto one = engine();
  proxy::LinkConfig config;
  config.name = "u";
  config.transport = proxy::Transport::udp;
  config.listen = "127.0.0.1:0";
  config.upstream = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  if (rate > 0) {
    proxy::Bandwidth bandwidth{rate};
    bandwidth.queue_bytes = 16 << 20;
    config.faults.faults = {{"", {proxy::Flow::to_upstream}, bandwidth}};
  }
  const auto added = one->add_link(std::move(config));
  if (!added) std::exit(2);
  const auto to = bench::loopback(static_cast<std::uint16_t>(std::stoi(added->substr(added->rfind(':') + 1))));
  std::atomic<bool> over{false};
  std::thread sender([&] {
    const std::string bytes(size, 'x');
    const auto begin = Clock::now();
    for (double sent = 0; !over; sent += static_cast<double>(size)) {
      while (rate > 0 && !over && sent > 1.25 * static_cast<double>(rate) * ms(Clock::now() - begin) / 1e3)
        leafcutter::tests::pace(100us);
      (void)::sendto(from, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
  });
  const auto passed = [&] { return static_cast<double>(one->stats("u")->bytes_to_upstream); };
  until([&] { return passed() >= 2.0 * static_cast<double>(size); });
  const auto first = passed();
  const auto begin = Clock::now();
  leafcutter::tests::pace(1s);
  const auto seen = (passed() - first) / (ms(Clock::now() - begin) / 1e3);
  over = true;
  sender.join();
  ::close(from);
  ::close(sink);
  if (rate == 0)
    std::printf("| none | %zu | %.3f | |\n", size, seen / 1e6);
  else
    std::printf("| %.3f | %zu | %.3f | %+.2f %% |\n", static_cast<double>(rate) / 1e6, size, seen / 1e6,
                (seen / static_cast<double>(rate) - 1) * 100);
}

void datagram_rates() {
  std::printf("\n| bandwidth of a UDP link, MB/s | datagrams of bytes | seen, MB/s | error |\n|---|---|---|---|\n");
  for (const auto& [rate, size] : {std::pair<std::uint64_t, std::size_t>{10'000, 100},
                                   {100'000, 200},
                                   {1'000'000, 1000},
                                   {10'000'000, 1200},
                                   {50'000'000, 8000},
                                   {100'000'000, 16'000},
                                   {200'000'000, 16'000},
                                   {400'000'000, 32'000},
                                   {0, 1200},
                                   {0, 32'000}})
    datagram_rate(rate, size);
}

/// What a link holds for clients that stop reading while the upstream goes on sending.
void stopped_readers() {
  std::printf(
      "\n| memory of a link, MB | readers that stop | held at most, MB | process grew by, MB |\n|---|---|---|---|\n");
  for (const std::size_t budget : {1, 16, 64})
    for (const int readers : {1, 64}) {
      std::uint16_t port = 0;
      const int listener = listening(port);
      const auto one = engine();
      proxy::LinkConfig config;
      config.name = "l";
      config.listen = "127.0.0.1:0";
      config.upstream = "127.0.0.1:" + std::to_string(port);
      config.limits.memory_bytes = budget << 20;
      config.faults.faults = {{"", {proxy::Flow::to_client}, proxy::Latency{proxy::FixedTime{50ms}}},
                              {"", {proxy::Flow::to_client}, proxy::Slice{4096}}};
      const auto added = one->add_link(std::move(config));
      if (!added) std::exit(2);
      const auto before = resident_mb();
      std::vector<int> ends;
      const std::vector<char> bytes(1 << 20, 'x');
      for (int i = 0; i < readers; ++i) {
        ends.push_back(dial(static_cast<std::uint16_t>(std::stoi(added->substr(added->rfind(':') + 1)))));
        ends.push_back(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      }
      double most = 0;
      // Until nothing more is taken for half a second.
      for (auto last = Clock::now(); Clock::now() - last < 500ms; ::poll(nullptr, 0, 1)) {
        for (std::size_t i = 1; i < ends.size(); i += 2)
          if (::send(ends[i], bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) last = Clock::now();
        most = std::max(most, resident_mb() - before);
      }
      std::printf("| %zu | %d | %.2f | %.1f |\n", budget, readers,
                  static_cast<double>(one->stats("l")->held_bytes_peak) / (1 << 20), most);
      for (const int fd : ends) ::close(fd);
      ::close(listener);
    }
}

void idle_connections(std::uint16_t upstream) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  // Two descriptors each.
  const auto crowd = std::min<std::uint64_t>(10'000, (limit.rlim_cur - 100) / 2);
  const auto one = engine();
  const auto port = link(*one, "l", upstream);
  const auto before = resident_mb();
  const auto clients = ::fork();
  if (clients == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::uint64_t i = 0; i < crowd; ++i) dial(port);
    ::pause();
  }
  const bool all = until([&] { return one->stats("l")->connected == crowd; });
  std::printf("| idle connections | %llu%s | %.1f MB |\n", static_cast<unsigned long long>(one->stats("l")->connected),
              all ? "" : " (not all came)", resident_mb() - before);
  ::kill(clients, SIGKILL);
  ::waitpid(clients, nullptr, 0);
}

void many_links(std::uint16_t upstream) {
  for (const int count : {1, 4, 16, 64}) {
    const auto one = engine();
    const auto memory = resident_mb();
    const auto cpu = cpu_ms();
    const auto begin = Clock::now();
    std::vector<std::uint16_t> ports;
    for (int i = 0; i < count; ++i) ports.push_back(link(*one, "l" + std::to_string(i), upstream));
    const auto added = ms(Clock::now() - begin);
    for (const auto port : ports)
      if (bench::echo_median_us(port, 500) <= 0) std::exit(2);
    const auto used = cpu_ms() - cpu;
    std::printf("| links, each added and 500 echoes | %d | added in %.2f ms, %.1f ms CPU (%.2f a link), %.2f MB |\n",
                count, added, used, used / count, resident_mb() - memory);
  }
}

void removal(std::uint16_t upstream) {
  const auto one = engine();
  const auto port = link(*one, "l", upstream, {{"", {}, proxy::Latency{proxy::FixedTime{1h}}}});
  std::vector<int> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(dial(port));
    const std::string bytes(2000, 'E');
    if (::send(clients.back(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) std::exit(2);
  }
  until([&] { return one->stats("l")->strikes == 1000; });
  const auto begin = Clock::now();
  (void)one->set_faults("l", {});
  std::printf("| a fault removed from stuck clients | 1000 | %.2f ms |\n", ms(Clock::now() - begin));
  for (const int fd : clients) ::close(fd);
}

}  // namespace

int main() {
  const rlimit many{65'536, 65'536};
  (void)::setrlimit(RLIMIT_NOFILE, &many);  // root's alone; without it the crowd is smaller
  const auto upstream = bench::serve_upstream();
  std::printf("| what | how many | cost |\n|---|---|---|\n");
  idle_connections(upstream);  // first, while nothing else has grown the process
  removal(upstream);
  many_links(upstream);
  stopped_readers();
  datagram_rates();
  lone_delays();
  std::printf("\n");
  std::printf(
      "| latency (to the client) | bulk flows beside | least error ms | p50 | p90 | p99 | most | a sleep of 5 ms: p99 "
      "|\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const int beside : {0, 2}) delays(upstream, beside);
}
