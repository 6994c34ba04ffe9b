#include "rig.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

constexpr auto patience = std::chrono::seconds(20);

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void set_buffers(int fd, int bytes) {
  if (bytes == 0) return;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

std::string error_text(int error) {
  if (error == ECONNRESET) return "ECONNRESET";
  if (error == EPIPE) return "EPIPE";
  if (error == EAGAIN) return "nothing came within the deadline";
  return std::strerror(error);
}

}  // namespace

std::pair<base::UniqueFd, std::uint16_t> listen_on_loopback(int buffer_bytes) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_buffers(fd.get(), buffer_bytes);
  auto address = loopback(0);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd.get(), 512) != 0)
    throw std::runtime_error("cannot listen on loopback");
  socklen_t length = sizeof address;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return {std::move(fd), ntohs(address.sin_port)};
}

std::uint16_t dead_port() { return listen_on_loopback().second; }

bool eventually(const std::function<bool()>& true_now) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!true_now()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

// --- Peer ---

Peer::Peer(base::UniqueFd fd) : fd_(std::move(fd)) {
  const timeval limit{20, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Peer Peer::dial(std::uint16_t port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error(std::string("dial: ") + std::strerror(errno));
  return Peer(std::move(fd));
}

bool Peer::try_send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void Peer::send(std::string_view bytes) {
  if (!try_send(bytes)) ADD_FAILURE() << "send: " << std::strerror(errno);
}

bool Peer::fill() {
  if (!ending_.empty()) return false;
  char bytes[65536];
  const auto count = ::recv(fd_.get(), bytes, sizeof bytes, 0);
  if (count > 0) {
    pending_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }
  ending_ = count == 0 ? "end" : error_text(errno);
  return false;
}

std::string Peer::receive(std::size_t count) {
  while (pending_.size() < count && fill()) {
  }
  auto bytes = pending_.substr(0, count);
  pending_.erase(0, bytes.size());
  return bytes;
}

std::string Peer::receive_all() {
  while (fill()) {
  }
  return std::exchange(pending_, {});
}

std::string Peer::receive_until(std::string_view end) {
  while (pending_.find(end) == std::string::npos && fill()) {
  }
  const auto found = pending_.find(end);
  return receive(found == std::string::npos ? pending_.size() : found + end.size());
}

std::string Peer::receive_message() {
  auto message = receive_until("\r\n\r\n");
  const auto header = message.find("Content-Length: ");
  if (header == std::string::npos) return message;
  const auto length = std::stoul(message.substr(header + 16));
  return message + receive(length);
}

std::string Peer::await_ending() {
  receive_all();
  return ending_;
}

void Peer::finish_sending() { ::shutdown(fd_.get(), SHUT_WR); }

void Peer::close_with_reset() {
  const linger at_once{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void Peer::buffer_sizes(int bytes) { set_buffers(fd_.get(), bytes); }

// --- Callee ---

Callee::Callee(Serve serve, int buffer_bytes) : serve_(std::move(serve)), buffer_bytes_(buffer_bytes) {
  std::tie(listener_, port_) = listen_on_loopback(buffer_bytes_);
  acceptor_ = std::thread([this] { accept_all(); });
}

void Callee::accept_all() {
  for (;;) {
    const bool last_look = stopping_;  // what was dialled before the end is still served
    pollfd ready{listener_.get(), POLLIN, 0};
    if (::poll(&ready, 1, last_look ? 0 : 20) <= 0) {
      if (last_look) return;
      continue;
    }
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) continue;
    ++accepted_;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, peer = std::make_shared<Peer>(std::move(fd))] { serve_(*peer); });
  }
}

Callee::~Callee() {
  stopping_ = true;
  acceptor_.join();
  for (auto& thread : threads_) thread.join();
}

HttpCallee::HttpCallee(Answer answer)
    : answer_(answer ? std::move(answer) : [](const std::string&) { return ok_response("{\"ok\":true}"); }),
      callee_([this](Peer& peer) {
        for (;;) {
          const auto request = peer.receive_message();
          if (request.find("\r\n\r\n") == std::string::npos) return;
          {
            const std::lock_guard lock(mutex_);
            requests_.push_back(request);
          }
          if (!peer.try_send(answer_(request))) return;
        }
      }) {}

std::vector<std::string> HttpCallee::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::string ok_response(const std::string& body, const std::string& headers) {
  return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: callee\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}
std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: callee\r\n\r\n"; }

Fault link_fault(const std::string& kind, const std::string& operation, const std::string& resource,
                 std::uint32_t occurrence, Value params) {
  return {kind, {"shop -> broker", operation, resource}, occurrence, std::move(params)};
}

// --- Rig ---

Rig::Rig(std::uint16_t callee_port, RigOptions options) {
  const auto begin = std::chrono::steady_clock::now();
  recorder = std::make_unique<Recorder>([begin] { return std::chrono::steady_clock::now() - begin; },
                                        [this](Event event) {
                                          const std::lock_guard lock(mutex_);
                                          events_.push_back(std::move(event));
                                          changed_.notify_all();
                                        });
  scenarios::Plan plan;
  plan.faults = options.faults;
  sites = std::make_unique<SiteBook>(plan, *recorder);
  link_.from = "shop";
  link_.to = "broker";
  link_.port = "http";
  link_.protocol = options.protocol;
  if (needs_detour(plan))
    detour_ = std::make_unique<Detour>(
        DetourContext{engine_, *recorder, *sites, activity,
                      []() -> base::Expected<base::UniqueFd> {
                        return base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
                      },
                      [this, never = options.later_never_comes](std::function<void()> task) {
                        if (!never) boost::asio::post(io_, std::move(task));
                      }});
  std::vector<base::UniqueFd> listeners;
  base::UniqueFd listener;
  std::tie(listener, port_) = listen_on_loopback(options.buffer_bytes);
  listeners.push_back(std::move(listener));
  using boost::asio::ip::tcp;
  std::vector<tcp::endpoint> upstream;
  for (const auto port : options.dead_ports_first) upstream.emplace_back(boost::asio::ip::address_v4::loopback(), port);
  upstream.emplace_back(boost::asio::ip::address_v4::loopback(), callee_port);
  proxy_ = std::make_unique<LinkProxy>(
      ProxyContext{io_, *recorder, *sites, activity, detour_.get(), {}, {}}, link_, std::move(listeners),
      [buffer_bytes = options.buffer_bytes](int family) -> base::Expected<base::UniqueFd> {
        base::UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!fd) return base::system_error("socket", errno);
        set_buffers(fd.get(), buffer_bytes);
        return fd;
      },
      upstream);
  proxy_->start();
  thread_ = std::thread([this] {
    const auto work = boost::asio::make_work_guard(io_);
    loop_ = ::gettid();
    io_.run();
  });
}

bool Rig::loop_sleeps() const {
  const auto text = base::read_file("/proc/self/task/" + std::to_string(loop_) + "/stat");
  return text && text->find(") S ") != std::string::npos;
}

void Rig::stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(io_, [this] {
    proxy_->stop();
    io_.stop();
  });
  thread_.join();
  engine_.stop();
}

Rig::~Rig() { stop(); }

std::vector<Event> Rig::events(const std::string& kind) const {
  const std::lock_guard lock(mutex_);
  std::vector<Event> found;
  for (const auto& event : events_)
    if (event.kind == kind) found.push_back(event);
  return found;
}

std::vector<Event> Rig::all_events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::vector<Event> Rig::await_events(const std::string& kind, std::size_t count) {
  std::unique_lock lock(mutex_);
  const auto enough = [&] {
    return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(),
                                                  [&](const Event& event) { return event.kind == kind; })) >= count;
  };
  if (!changed_.wait_for(lock, patience, enough)) {
    std::string seen;
    for (const auto& event : events_) seen += " " + event.kind;
    throw std::runtime_error("waited for " + std::to_string(count) + " events " + kind + "; seen:" + seen);
  }
  lock.unlock();
  return events(kind);
}

}  // namespace leafcutter::node
