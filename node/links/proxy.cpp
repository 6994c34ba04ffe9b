#include "node/links/proxy.hpp"

#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <map>

#include "node/links/connection.hpp"
#include "node/links/detour.hpp"
#include "node/links/dials.hpp"
#include "node/links/link_context.hpp"

namespace leafcutter::node {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// More than that wait in the listener's own queue.
constexpr std::size_t most_connections = 4096;
constexpr int accepts_in_a_row = 64;
/// Until descriptors or memory that the host lacks may be there again; accept() has nothing that could be waited for.
constexpr auto scarcity_pause = std::chrono::milliseconds(20);

bool scarce(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

/// A filter that keeps nothing makes the kernel drop every packet for the socket before TCP sees it. Verified: no
/// filter is left when it is taken away.
base::Status lose_at(int listener, bool lose) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &nothing};
  int unused = 0;
  if (::setsockopt(listener, SOL_SOCKET, lose ? SO_ATTACH_FILTER : SO_DETACH_FILTER,
                   lose ? static_cast<const void*>(&program) : &unused, lose ? sizeof program : sizeof unused) != 0)
    return base::system_error(lose ? "part a listener from its callers" : "heal a listener", errno);
  socklen_t length = 0;
  if (::getsockopt(listener, SOL_SOCKET, SO_GET_FILTER, nullptr, &length) != 0)
    return base::system_error("look at a listener's filter", errno);
  if ((length > 0) != lose)
    return base::Error{base::ErrorCode::conflict, "a listener's filter is not as it was set", {}};
  return base::ok();
}

std::uint64_t lost_at(int listener) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> numbers{};
  socklen_t length = sizeof numbers;
  if (::getsockopt(listener, SOL_SOCKET, SO_MEMINFO, numbers.data(), &length) != 0) return 0;
  return numbers[SK_MEMINFO_DROPS];
}

}  // namespace

struct LinkProxy::State : std::enable_shared_from_this<LinkProxy::State> {
  struct Listener {
    Listener(asio::io_context& io, int family, base::UniqueFd fd)
        : v6(family == AF_INET6), acceptor(io, v6 ? tcp::v6() : tcp::v4(), fd.release()), pause(io) {}
    bool v6;
    bool waiting = false;
    tcp::acceptor acceptor;
    asio::steady_timer pause;
  };

  std::shared_ptr<LinkContext> context;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;
  int losing = 0;
  bool stopped = false;

  void await(Listener& listener) {
    if (stopped || listener.waiting || connections.size() >= most_connections) return;
    listener.waiting = true;
    listener.acceptor.async_wait(tcp::acceptor::wait_read,
                                 [self = shared_from_this(), &listener](const boost::system::error_code& error) {
                                   listener.waiting = false;
                                   if (!error && !self->stopped) self->accept(listener);
                                 });
  }

  void accept(Listener& listener) {
    for (int i = 0; i < accepts_in_a_row && connections.size() < most_connections; ++i) {
      // Close-on-exec from the first moment: a service that inherited a connection would keep it open.
      base::UniqueFd fd(::accept4(listener.acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd) {
        begin(std::move(fd), listener.v6);
        if (stopped) return;
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (scarce(errno)) {
        pause(listener);
        return;
      }
      break;
    }
    await(listener);
  }

  void pause(Listener& listener) {
    listener.pause.expires_after(scarcity_pause);
    listener.pause.async_wait([self = shared_from_this(), &listener](const boost::system::error_code& cancelled) {
      if (!cancelled) self->await(listener);
    });
  }

  void begin(base::UniqueFd fd, bool v6) {
    const auto& proxy = context->proxy;
    // What was open before is counted before this one.
    if (proxy.detour != nullptr) proxy.detour->catch_up();
    const auto visit = proxy.dials != nullptr ? proxy.dials->arrived(context->id)
                                              : proxy.sites.visit(connect_site(context->id), SiteBook::LinkFacts{});
    // Its number among the link's, refused ones counted.
    const auto connection = std::make_shared<Connection>(context, visit.occurrence, std::move(fd), v6);
    connections.emplace(visit.occurrence, connection);
    connection->start(visit);
  }

  void ended(const Connection& connection) {
    const bool was_full = connections.size() >= most_connections;
    connections.erase(connection.number());
    if (was_full)
      for (const auto& listener : listeners) await(*listener);
  }

  void stop() {
    if (stopped) return;
    stopped = true;
    for (const auto& listener : listeners) {
      boost::system::error_code ignored;
      listener->acceptor.close(ignored);
      listener->pause.cancel();
    }
    for (const auto& [number, connection] : connections) connection->stop();
    connections.clear();
  }
};

LinkProxy::LinkProxy(ProxyContext context, scenarios::Link link, std::vector<base::UniqueFd> listeners,
                     OpenSocket open_socket, std::vector<tcp::endpoint> upstream)
    : state_(std::make_shared<State>()) {
  auto& io = context.io;
  if (!context.clock)
    context.clock = [begin = std::chrono::steady_clock::now()] { return std::chrono::steady_clock::now() - begin; };
  const auto id = link.id();
  state_->context = std::make_shared<LinkContext>(LinkContext{std::move(context), std::move(link), id,
                                                              std::move(open_socket), std::move(upstream),
                                                              [weak = std::weak_ptr(state_)](Connection& connection) {
                                                                if (const auto state = weak.lock())
                                                                  state->ended(connection);
                                                              }});
  for (auto& fd : listeners) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
    state_->listeners.push_back(std::make_unique<State::Listener>(io, address.ss_family, std::move(fd)));
    boost::system::error_code ignored;
    state_->listeners.back()->acceptor.native_non_blocking(true, ignored);
  }
}

LinkProxy::~LinkProxy() { stop(); }

void LinkProxy::start() {
  for (const auto& listener : state_->listeners) state_->await(*listener);
}

base::Status LinkProxy::lose_connects(bool lose) {
  auto& depth = state_->losing;
  const bool before = depth > 0;
  depth += lose ? 1 : -1;
  if ((depth > 0) == before) return base::ok();
  for (const auto& listener : state_->listeners)
    if (auto status = lose_at(listener->acceptor.native_handle(), lose); !status) return status;
  return base::ok();
}

std::uint64_t LinkProxy::lost_connects() const {
  std::uint64_t lost = 0;
  for (const auto& listener : state_->listeners) lost += lost_at(listener->acceptor.native_handle());
  return lost;
}

const std::string& LinkProxy::lane() const { return state_->context->id; }

void LinkProxy::stop() { state_->stop(); }

}  // namespace leafcutter::node
