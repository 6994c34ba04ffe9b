#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <caf/actor_cast.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/io/scribe.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actors/transport/connections.hpp"
#include "actors/transport/dial.hpp"
#include "actors/transport/transport.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::actors {

namespace {

namespace net = caf::io::network;
using base::Error;
using base::ErrorCode;
using base::Expected;
using caf::io::network::rw_state;

using sweep_atom = caf::atom_constant<caf::atom("sweep")>;

constexpr auto sweep_every = std::chrono::milliseconds(200);
constexpr auto publish_within = std::chrono::seconds(10);

using ConnectionPtr = std::shared_ptr<TlsConnection>;

void prepare_socket(int fd) {
  net::nonblocking(fd, true);
  net::keepalive(fd, true);
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/// What CAF's stream does with its socket.
struct TlsPolicy {
  ConnectionPtr connection;
  std::function<void()> on_established, on_want_write;

  bool drive() {
    const auto progress = connection->drive();
    if (progress == TlsSession::Progress::failed) return false;
    if (progress == TlsSession::Progress::done) {
      if (const auto tell = std::exchange(on_established, nullptr)) tell();
    } else if (connection->session().wants_write()) {
      on_want_write();
    }
    return true;
  }
  rw_state read_some(std::size_t& count, net::native_socket, void* buffer, std::size_t size) {
    count = 0;
    if (!connection->session().established()) {
      if (!drive()) return rw_state::failure;
      // Nothing yet: CAF waits for the socket, not for a write.
      if (!connection->session().established()) return rw_state::success;
    }
    if (connection->over()) return rw_state::failure;
    if (size == 0) return rw_state::indeterminate;
    return connection->session().read(count, buffer, size) ? rw_state::success : rw_state::failure;
  }
  rw_state write_some(std::size_t& count, net::native_socket, const void* buffer, std::size_t size) {
    count = 0;
    if (!connection->session().established()) return drive() ? rw_state::indeterminate : rw_state::failure;
    if (size == 0) return rw_state::indeterminate;
    return connection->session().write(count, buffer, size) ? rw_state::success : rw_state::failure;
  }
  bool must_read_more(net::native_socket, std::size_t) const { return connection->session().pending(); }
};

class SecureScribe final : public caf::io::scribe {
 public:
  SecureScribe(net::default_multiplexer& multiplexer, int fd, ConnectionPtr connection)
      : scribe(net::conn_hdl_from_socket(fd)),
        connection_(connection),
        stream_(multiplexer, fd,
                TlsPolicy{std::move(connection), [this] { stream_.flush(this); },
                          [this] { stream_.force_empty_write(this); }}) {}
  ~SecureScribe() override { connection_->let_go(); }

  void configure_read(caf::io::receive_policy::config config) override {
    // BASP asks for as much as the peer has announced: refused before it is allocated.
    if (!connection_->within_payload(config.second)) return;
    stream_.configure_read(config);
    if (launched_) return;
    launched_ = true;
    stream_.start(this);
    if (connection_->session().wants_write()) stream_.force_empty_write(this);
  }
  bool consume(caf::execution_unit* context, const void* bytes, std::size_t size) override {
    // `true` also for what is not passed on: the stream then reads on, finds the end and has everything cleaned up.
    std::size_t next = 0;
    if (!connection_->examine({static_cast<const char*>(bytes), size}, next)) {
      if (!connection_->over()) stream_.configure_read(caf::io::receive_policy::exactly(next));
      return true;
    }
    return scribe::consume(context, bytes, size);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void flush() override {
    // Held back until the handshake is done: an armed write event would burn a core meanwhile.
    if (connection_->session().established() && connection_->within_backlog(stream_.wr_buf().size()))
      stream_.flush(this);
  }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  std::string addr() const override {
    const auto address = net::remote_addr_of_fd(stream_.fd());
    return address ? *address : std::string();
  }
  std::uint16_t port() const override {
    const auto port = net::remote_port_of_fd(stream_.fd());
    return port ? *port : std::uint16_t{0};
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  bool launched_ = false;
  ConnectionPtr connection_;
  net::stream_impl<TlsPolicy> stream_;
};

class SecureDoorman final : public net::doorman_impl {
 public:
  SecureDoorman(net::default_multiplexer& multiplexer, int fd, std::shared_ptr<Connections> connections)
      : doorman_impl(multiplexer, fd), connections_(std::move(connections)) {}

  bool new_connection() override {
    if (detached()) return false;
    auto& multiplexer = acceptor_.backend();
    base::UniqueFd fd(acceptor_.accepted_socket());
    prepare_socket(fd.get());
    const auto context = connections_->context();
    if (!context) return true;  // there was one when we began, and the last good one is kept
    auto connection = std::make_shared<TlsConnection>(connections_, *context, fd.get(), true);
    if (!connections_->arrive(connection)) {
      connection->let_go();
      return true;
    }
    auto scribe = caf::make_counted<SecureScribe>(multiplexer, fd.release(), std::move(connection));
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&multiplexer, handle);
  }

 private:
  std::shared_ptr<Connections> connections_;
};

class SecureMiddleman final : public caf::io::middleman_actor_impl {
 public:
  SecureMiddleman(caf::actor_config& config, caf::actor broker, std::shared_ptr<Connections> connections)
      : middleman_actor_impl(config, std::move(broker)), connections_(std::move(connections)) {}
  const char* name() const override { return "secure_middleman"; }

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, std::uint16_t port) override {
    const auto context = connections_->context();
    auto fd = dial(host, port);
    if (!context || !fd) return caf::sec::cannot_connect_to_node;
    prepare_socket(fd->get());
    auto connection = std::make_shared<TlsConnection>(connections_, *context, fd->get(), false);
    // The first step makes our greeting, so that the stream knows that it has something to write.
    if (connection->drive() == TlsSession::Progress::failed) {
      connection->let_go();
      return caf::sec::cannot_connect_to_node;
    }
    // The list of connections belongs to the multiplexer's thread; we are an actor.
    multiplexer().post([all = connections_, connection] { (void)all->arrive(connection); });
    return caf::make_counted<SecureScribe>(multiplexer(), fd->release(), std::move(connection));
  }
  caf::expected<caf::io::doorman_ptr> open(std::uint16_t port, const char* address, bool reuse) override {
    auto fd = net::new_tcp_acceptor_impl(port, address, reuse);
    if (!fd) return std::move(fd.error());
    return caf::make_counted<SecureDoorman>(multiplexer(), *fd, connections_);
  }

 private:
  net::default_multiplexer& multiplexer() {
    return static_cast<net::default_multiplexer&>(system().middleman().backend());
  }
  std::shared_ptr<Connections> connections_;
};

/// Has the multiplexer's thread look at its connections, again and again.
caf::behavior sweeper(caf::event_based_actor* self, const std::shared_ptr<Connections>& connections) {
  self->delayed_send(self, sweep_every, sweep_atom::value);
  return {[=](sweep_atom) {
    self->system().middleman().backend().post([connections] { connections->sweep(TlsConnection::Clock::now()); });
    self->delayed_send(self, sweep_every, sweep_atom::value);
  }};
}

class CafTransport final : public Transport {
 public:
  CafTransport(caf::actor_system& system, std::shared_ptr<Connections> connections)
      : system_(system), connections_(std::move(connections)) {
    auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
    middleman_ = system.spawn<SecureMiddleman, caf::detached + caf::hidden>(std::move(broker), connections_);
    sweeper_ = system.spawn<caf::hidden>(sweeper, connections_);
  }
  ~CafTransport() override {
    caf::anon_send_exit(middleman_, caf::exit_reason::kill);
    caf::anon_send_exit(sweeper_, caf::exit_reason::kill);
  }

  const caf::io::middleman_actor& middleman() const override { return middleman_; }

  Expected<std::uint16_t> publish(const coordinator_actor& actor, const std::string& host,
                                  std::uint16_t port) override {
    connections_->publish(actor.id());
    caf::scoped_actor self{system_};
    Expected<std::uint16_t> bound = Error{ErrorCode::internal, "no answer"};
    self->request(middleman_, publish_within, caf::publish_atom::value, port,
                  caf::actor_cast<caf::strong_actor_ptr>(actor), system_.message_types(actor), host, true)
        .receive([&](std::uint16_t taken) { bound = taken; },
                 [&](const caf::error& error) {
                   bound = Error{ErrorCode::io, "cannot listen on " + host + ":" + std::to_string(port) + ": " +
                                                    system_.render(error) + "; another port would do"};
                 });
    return bound;
  }

  std::optional<Peer> peer_of(const caf::node_id& node) const override {
    std::vector<char> bytes;
    caf::binary_serializer sink{system_, bytes};
    if (sink(const_cast<caf::node_id&>(node))) return std::nullopt;
    return connections_->peer_of({bytes.data(), bytes.size()});
  }

  TransportCounters counters() const override { return connections_->counters(); }

 private:
  caf::actor_system& system_;
  std::shared_ptr<Connections> connections_;
  caf::io::middleman_actor middleman_;
  caf::actor sweeper_;
};

}  // namespace

Transport::~Transport() = default;

Expected<std::shared_ptr<Transport>> Transport::start(caf::actor_system& system, TransportOptions options) {
  auto connections = std::make_shared<Connections>(std::move(options));
  if (const auto context = connections->context(); !context) return context.error();
  return std::shared_ptr<Transport>(std::make_shared<CafTransport>(system, std::move(connections)));
}

}  // namespace leafcutter::actors
