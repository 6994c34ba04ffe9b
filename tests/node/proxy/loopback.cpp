#include "loopback.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr auto peer_deadline = 10s;

SocketAddress address_of(const std::string& text) { return literal_address(*parse_host_port(text, "test"))[0]; }

std::string name_of_errno(int error) { return error == EAGAIN ? "nothing in time" : ::strerrorname_np(error); }

void set_deadline(int fd) {
  const timeval limit{std::chrono::seconds(peer_deadline).count(), 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

std::uint16_t port_of(const std::string& address) { return parse_host_port(address, "test")->port; }

bool eventually(const std::function<bool()>& true_now, Duration limit) {
  const auto until = Clock::now() + limit;
  while (!true_now()) {
    if (Clock::now() > until) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

std::uint16_t dead_port() {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = address_of("127.0.0.1:0");
  ::bind(fd.get(), address.get(), address.length);
  return local_address(fd.get()).port();
}

Peer::Peer(base::UniqueFd fd) : fd_(std::move(fd)) {
  set_deadline(fd_.get());
  send_at_once(fd_.get());
}

int Peer::try_dial(const std::string& text, Peer& peer) {
  const auto address = address_of(text);
  base::UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), address.get(), address.length) != 0) return errno;
  peer = Peer(std::move(fd));
  return 0;
}

Peer Peer::dial(const std::string& address) {
  Peer peer;
  const int error = try_dial(address, peer);
  EXPECT_EQ(error, 0) << "connect to " << address << ": " << std::strerror(error);
  return peer;
}

void Peer::send(std::string_view bytes) { EXPECT_TRUE(try_send(bytes)) << std::strerror(errno); }

bool Peer::try_send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string Peer::receive(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < count) {
    const auto more = ::recv(fd_.get(), bytes.data() + got, count - got, 0);
    if (more <= 0) {
      ending_ = more == 0 ? "end" : name_of_errno(errno);
      break;
    }
    got += static_cast<std::size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

bool Peer::quiet_for(Duration span) {
  pollfd state{fd_.get(), POLLIN, 0};
  return ::poll(&state, 1, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(span).count())) == 0;
}

std::string Peer::receive_all() {
  std::string all;
  for (;;) {
    auto more = receive(64 << 10);
    all += more;
    if (more.size() < (64 << 10)) return all;
  }
}

std::string Peer::ending() {
  if (ending_.empty()) receive_all();
  return ending_;
}

void Peer::finish_sending() { ::shutdown(fd_.get(), SHUT_WR); }

void Peer::reset() {
  reset_on_close(fd_.get());
  fd_.reset();
}

Upstream::Upstream(Serve serve, const std::string& host) : serve_(std::move(serve)) {
  listener_ = std::move(
      *open_listener(address_of(host.find(':') == std::string::npos ? host + ":0" : "[" + host + "]:0"), SOCK_STREAM));
  address_ = local_address(listener_.get()).text();
  acceptor_ = std::thread([this] { accept_all(); });
}

Upstream::~Upstream() {
  stopping_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  for (auto& thread : threads_) thread.join();
}

void Upstream::accept_all() {
  while (!stopping_) {
    pollfd state{listener_.get(), POLLIN, 0};
    ::poll(&state, 1, 1000);
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) continue;
    ++accepted_;
    const std::lock_guard lock(mutex_);
    open_.push_back(fd.get());
    threads_.emplace_back([this, raw = fd.release()] {
      Peer peer{base::UniqueFd(raw)};
      serve_(peer);
      const std::lock_guard guard(mutex_);
      std::erase(open_, raw);
      peer.close();
    });
  }
}

void echo(Peer& peer) {
  char buffer[16 << 10];
  for (;;) {
    const auto count = ::recv(peer.fd(), buffer, sizeof buffer, 0);
    if (count <= 0 || !peer.try_send({buffer, static_cast<std::size_t>(count)})) return;
  }
}

UdpPeer::UdpPeer(const std::string& host, std::uint16_t port) {
  const auto end = ":" + std::to_string(port);
  auto address = address_of(host.find(':') == std::string::npos ? host + end : "[" + host + "]" + end);
  fd_.reset(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::bind(fd_.get(), address.get(), address.length);
  address_ = local_address(fd_.get()).text();
}

void UdpPeer::send_to(const std::string& to, std::string_view bytes) {
  const auto address = address_of(to);
  EXPECT_EQ(::sendto(fd_.get(), bytes.data(), bytes.size(), 0, address.get(), address.length),
            static_cast<ssize_t>(bytes.size()));
}

std::string UdpPeer::receive(Duration limit) {
  pollfd state{fd_.get(), POLLIN, 0};
  if (::poll(&state, 1, static_cast<int>(limit / 1ms)) <= 0) return "";
  char buffer[64 << 10];
  SocketAddress from;
  from.length = sizeof from.storage;
  const auto count = ::recvfrom(fd_.get(), buffer, sizeof buffer, 0, from.get(), &from.length);
  if (count < 0) return "";
  sender_ = from.text();
  return {buffer, static_cast<std::size_t>(count)};
}

Rig::Rig(EngineOptions options) {
  if (!options.hook)
    options.hook = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      seen_.push_back({event.kind, std::string(event.link), std::string(event.phase), std::string(event.fault),
                       std::string(event.effect), std::string(event.detail), event.connection, event.operation,
                       event.offset, event.bytes, event.bytes_back, event.direction, event.delay, event.cause});
    };
  auto started = Engine::start(std::move(options));
  if (!started) throw std::runtime_error(started.error().text());
  engine = std::move(*started);
}

std::string Rig::add(LinkConfig config) {
  const auto added = engine->add_link(std::move(config));
  EXPECT_TRUE(added) << added.error().text();
  return added ? *added : "";
}

std::string Rig::link(const std::string& name, const std::string& upstream, std::vector<Fault> faults,
                      LinkLimits limits) {
  LinkConfig config;
  config.name = name;
  config.listen = upstream.front() == '[' ? "[::1]:0" : "127.0.0.1:0";
  config.upstream = upstream;
  config.faults.faults = std::move(faults);
  config.limits = limits;
  return add(std::move(config));
}

std::string Rig::udp_link(const std::string& name, const std::string& upstream, std::vector<Fault> faults,
                          LinkLimits limits) {
  LinkConfig config;
  config.name = name;
  config.transport = Transport::udp;
  config.listen = upstream.front() == '[' ? "[::1]:0" : "127.0.0.1:0";
  config.upstream = upstream;
  config.faults.faults = std::move(faults);
  config.limits = limits;
  return add(std::move(config));
}

void Rig::set(const std::string& name, std::vector<Fault> faults, const std::string& phase) {
  const auto status = engine->set_faults(name, {phase, std::move(faults)});
  EXPECT_TRUE(status) << status.error().text();
}

std::vector<Seen> Rig::events(EventKind kind) {
  engine->flush_events();
  const std::lock_guard lock(mutex_);
  std::vector<Seen> found;
  for (const auto& one : seen_)
    if (one.kind == kind) found.push_back(one);
  return found;
}

std::vector<Seen> Rig::await(EventKind kind, std::size_t count) {
  std::vector<Seen> found;
  EXPECT_TRUE(eventually([&] { return (found = events(kind)).size() >= count; }))
      << count << " " << name_of(kind) << " awaited, " << found.size() << " there";
  return found;
}

Peer Line::dial() {
  auto client = Peer::dial(address);
  client.send("0");
  EXPECT_EQ(client.receive(1), "0");
  return client;
}

Duration round_trip(Peer& client) {
  const auto begin = Clock::now();
  client.send("x");
  EXPECT_EQ(client.receive(1), "x");
  return Clock::now() - begin;
}

}  // namespace leafcutter::node::proxy
