#include "node/resolver/server.hpp"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "protocols/dns_frames.hpp"

namespace leafcutter::node::resolver {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;

/// Until descriptors that the host lacks may be there again.
constexpr std::chrono::milliseconds scarcity_pause{20};

}  // namespace

struct Server::State : std::enable_shared_from_this<Server::State> {
  State(asio::io_context& loop, Activity& seen, Lookups known) : io(loop), activity(seen), lookups(std::move(known)) {}

  struct Datagrams {
    Datagrams(asio::io_context& loop, base::UniqueFd fd) : socket(loop, udp::v4(), fd.release()) {}
    udp::socket socket;
    udp::endpoint from;
    std::array<char, protocols::dns_message_limit> buffer;
  };
  struct Listener {
    Listener(asio::io_context& loop, base::UniqueFd fd) : acceptor(loop, tcp::v4(), fd.release()), pause(loop) {}
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    bool accepting = false;
  };
  struct Connection {
    explicit Connection(tcp::socket accepted) : socket(std::move(accepted)), deadline(socket.get_executor()) {}
    tcp::socket socket;
    asio::steady_timer deadline;
    std::array<char, 4096> buffer;
    protocols::DnsFrameReader reader;
    std::string out;
    std::string sending;
  };

  asio::io_context& io;
  Activity& activity;
  Lookups lookups;
  std::vector<std::unique_ptr<Datagrams>> datagrams;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::size_t connections = 0, waiting = 0;

  /// Answers now or later. `send` gets the bytes; what is not answered is over at once.
  template <class Send>
  void answer(std::string_view message, proxy::Transport transport, Send send) {
    activity.touch();
    auto made = lookups.ask(message, transport);
    if (made.delay.count() == 0 || waiting >= most_waiting) {
      if (made.bytes && made.delay.count() == 0) send(std::move(*made.bytes));
      if (made.ends) lookups.over(*made.ends);
      return;
    }
    ++waiting;
    static const std::string late = "a lookup of a name that is answered late";
    activity.begin(late);
    auto timer = std::make_shared<asio::steady_timer>(io, made.delay);
    timer->async_wait([self = shared_from_this(), timer, made = std::move(made), send](const error_code&) mutable {
      --self->waiting;
      if (made.bytes) send(std::move(*made.bytes));
      if (made.ends) self->lookups.over(*made.ends);
      self->activity.end(late);
    });
  }

  void receive(Datagrams& from) {
    from.socket.async_receive_from(asio::buffer(from.buffer), from.from,
                                   [self = shared_from_this(), &from](const error_code& error, std::size_t n) {
                                     if (error == asio::error::operation_aborted) return;
                                     // Another error is one of an answer sent before: its asker has gone.
                                     if (!error)
                                       self->answer({from.buffer.data(), n}, proxy::Transport::udp,
                                                    [self, &from, to = from.from](const std::string& bytes) {
                                                      error_code ignored;
                                                      from.socket.send_to(asio::buffer(bytes), to, 0, ignored);
                                                    });
                                     self->receive(from);
                                   });
  }

  void accept(Listener& listener) {
    if (listener.accepting || connections >= most_connections) return;
    listener.accepting = true;
    listener.acceptor.async_accept([self = shared_from_this(), &listener](const error_code& error, tcp::socket socket) {
      listener.accepting = false;
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        ++self->connections;
        self->read(std::make_shared<Connection>(std::move(socket)));
        self->accept(listener);
        return;
      }
      listener.pause.expires_after(scarcity_pause);
      listener.pause.async_wait([self, &listener](const error_code& cancelled) {
        if (!cancelled) self->accept(listener);
      });
    });
  }

  void read(const std::shared_ptr<Connection>& connection) {
    connection->deadline.expires_after(idle);
    connection->deadline.async_wait([connection](const error_code& cancelled) {
      error_code ignored;
      if (!cancelled) connection->socket.close(ignored);
    });
    connection->socket.async_read_some(
        asio::buffer(connection->buffer),
        [self = shared_from_this(), connection](const error_code& error, std::size_t count) {
          connection->deadline.cancel();
          if (error) return self->ended();
          std::string_view bytes(connection->buffer.data(), count);
          while (!bytes.empty()) {
            bytes.remove_prefix(connection->reader.feed(bytes));
            if (auto message = connection->reader.take()) self->answer_on(connection, *message);
          }
          self->read(connection);
        });
  }

  void answer_on(const std::shared_ptr<Connection>& connection, const std::string& message) {
    answer(message, proxy::Transport::tcp, [self = shared_from_this(), connection](const std::string& bytes) {
      if (const auto framed = protocols::dns_frame(bytes)) self->write(connection, *framed);
    });
  }

  void write(const std::shared_ptr<Connection>& connection, const std::string& bytes) {
    // Who asks and does not read is left: its answers would pile up.
    if (connection->out.size() > protocols::dns_message_limit) {
      error_code ignored;
      connection->socket.close(ignored);
      return;
    }
    connection->out += bytes;
    if (connection->sending.empty()) write_on(connection);
  }

  void write_on(const std::shared_ptr<Connection>& connection) {
    connection->sending = std::exchange(connection->out, {});
    if (connection->sending.empty()) return;
    asio::async_write(connection->socket, asio::buffer(connection->sending),
                      [self = shared_from_this(), connection](const error_code& error, std::size_t) {
                        connection->sending.clear();
                        if (!error) self->write_on(connection);
                      });
  }

  void ended() {
    const bool was_full = connections-- >= most_connections;
    if (was_full)
      for (const auto& listener : listeners) accept(*listener);
  }
};

Server::Server(asio::io_context& io, Activity& activity, Lookups lookups, ServerSockets sockets)
    : state_(std::make_shared<State>(io, activity, std::move(lookups))) {
  for (auto& fd : sockets.datagrams) state_->datagrams.push_back(std::make_unique<State::Datagrams>(io, std::move(fd)));
  for (auto& fd : sockets.streams) state_->listeners.push_back(std::make_unique<State::Listener>(io, std::move(fd)));
}

Server::~Server() {
  for (const auto& one : state_->datagrams) {
    error_code ignored;
    one->socket.close(ignored);
  }
  for (const auto& one : state_->listeners) {
    error_code ignored;
    one->acceptor.close(ignored);
    one->pause.cancel();
  }
}

void Server::start() {
  for (const auto& one : state_->datagrams) state_->receive(*one);
  for (const auto& one : state_->listeners) state_->accept(*one);
}

}  // namespace leafcutter::node::resolver
