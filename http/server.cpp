#include "http/server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <ctime>
#include <list>
#include <optional>
#include <thread>

namespace leafcutter::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

/// After accept() failed for want of descriptors.
constexpr auto accept_retry = std::chrono::milliseconds(50);

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

std::string string_of(beast::string_view text) { return {text.data(), text.size()}; }

/// The status for bytes that are no request of ours; 0: nobody is left to be told.
unsigned status_of_bad_request(const error_code& error) {
  if (error == wire::error::body_limit) return 413;
  if (error == wire::error::header_limit) return 431;
  if (error == wire::error::end_of_stream || error == wire::error::partial_message) return 0;
  return error.category() == wire::make_error_code(wire::error::bad_version).category() ? 400 : 0;
}

class HttpSession;

/// What sessions have in common. Lives on the server's thread.
struct Sessions {
  const ServerOptions& options;
  const Server::Handler& handler;
  const Server::Prepare& prepare;
  asio::io_context& io;
  std::list<std::shared_ptr<HttpSession>> open;  ///< the one heard of longest ago first
  std::function<void()> one_ended;
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(tcp::socket socket, Sessions& sessions)
      : stream_(std::move(socket)), patience_(sessions.io), sessions_(sessions) {}

  /// Waits for a request for that long.
  void await(std::chrono::milliseconds time) {
    idle_ = true;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(sessions_.options.header_bytes));
    parser_->body_limit(sessions_.options.body_bytes);
    stream_.expires_after(time);
    wire::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& error, std::size_t) { self->got_header(error); });
  }
  bool idle() const { return idle_; }
  void close() {
    patience_.cancel();
    stream_.close();
  }

 private:
  void got_header(const error_code& error) {
    idle_ = false;
    if (error) return refuse(error);
    auto& all = sessions_.open;
    const auto own = std::find(all.begin(), all.end(), shared_from_this());
    if (own != all.end()) all.splice(all.end(), all, own);
    stream_.expires_after(sessions_.options.read_time);
    if (!beast::iequals(parser_->get()[wire::field::expect], "100-continue")) return read_body();
    interim_.emplace(wire::status::continue_, parser_->get().version());
    wire::async_write(stream_, *interim_, [self = shared_from_this()](const error_code& failed, std::size_t) {
      if (failed) return self->end();
      self->read_body();
    });
  }

  void read_body() {
    wire::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](const error_code& error, std::size_t) {
      if (error) return self->refuse(error);
      self->got_request();
    });
  }

  void got_request() {
    const auto message = parser_->release();
    request_ = {string_of(message.method_string()), string_of(message.target()),
                string_of(message[wire::field::user_agent]), string_of(message[wire::field::authorization]),
                message.body()};
    version_ = message.version();
    keep_ = message.keep_alive();
    stream_.expires_never();
    if (!sessions_.prepare) return answer();
    preparing_ = true;
    patience_.expires_after(sessions_.options.prepare_time);
    patience_.async_wait([self = shared_from_this()](const error_code& aborted) {
      if (!aborted) self->prepared();
    });
    sessions_.prepare(request_, [&io = sessions_.io, weak = weak_from_this()] {
      asio::dispatch(io, [weak] {
        if (const auto self = weak.lock()) self->prepared();
      });
    });
  }

  void prepared() {
    if (!std::exchange(preparing_, false)) return;
    patience_.cancel();
    if (stream_.socket().is_open()) answer();
  }

  void answer() {
    Reply reply;
    try {
      reply = sessions_.handler(request_);
    } catch (const std::exception& error) {
      reply = sessions_.options.complaint(500, error.what());
    }
    if (request_.method == "HEAD") reply.body.clear();
    send(reply, version_, keep_);
  }

  void refuse(const error_code& error) {
    const auto status = status_of_bad_request(error);
    if (status == 0) return end();
    send(sessions_.options.complaint(status, "bad request: " + error.message()), 11, false);
  }

  void send(const Reply& reply, unsigned version, bool keep) {
    response_.emplace();
    response_->version(version);
    response_->result(reply.status);
    response_->set(wire::field::server, "leafcutter");
    response_->set(wire::field::date, http_date());
    for (const auto& [name, value] : reply.headers) response_->insert(name, value);
    response_->keep_alive(keep);
    response_->body() = reply.body;
    // A 204 has no length (RFC 9110, 8.6).
    if (reply.status != 204) response_->content_length(reply.body.size());
    stream_.expires_after(sessions_.options.write_time);
    wire::async_write(stream_, *response_, [self = shared_from_this(), keep](const error_code& error, std::size_t) {
      if (error || !keep) return self->end();
      self->await(self->sessions_.options.idle_time);
    });
  }

  void end() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.close();
    auto& all = sessions_.open;
    const auto own = std::find(all.begin(), all.end(), shared_from_this());
    if (own == all.end()) return;
    all.erase(own);
    sessions_.one_ended();
  }

  beast::tcp_stream stream_;
  asio::steady_timer patience_;  ///< with what is prepared
  Sessions& sessions_;
  beast::flat_buffer buffer_;
  std::optional<wire::request_parser<wire::string_body>> parser_;
  std::optional<wire::response<wire::string_body>> response_;
  std::optional<wire::response<wire::empty_body>> interim_;
  Request request_;
  unsigned version_ = 11;
  bool idle_ = true, keep_ = false, preparing_ = false;
};

}  // namespace

const std::string* Reply::header(const std::string& name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& one) { return one.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

Reply ServerOptions::plain_complaint(unsigned status, const std::string& why) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, why + "\n"};
}

struct Server::State {
  ServerOptions options;
  Handler handler;
  Prepare prepare;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer retry{io};
  Sessions sessions{options, handler, prepare, io, {}, {}};
  bool accepting = false, stopping = false;
  std::thread thread;

  base::Status listen(base::UniqueFd listener);
  void accept();
  void accepted(const error_code& error, tcp::socket socket);
  bool make_room();
  void run();
};

base::Status Server::State::listen(base::UniqueFd listener) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return base::system_error("serve HTTP", errno);
  error_code error;
  acceptor.assign(own.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listener.get(), error);
  if (error) return base::Error{base::ErrorCode::io, "serve HTTP: " + error.message(), {}};
  (void)listener.release();
  return base::ok();
}

/// Where there may be one more session: ends the one that has been idle longest, if it must.
bool Server::State::make_room() {
  auto& open = sessions.open;
  if (open.size() < options.connections) return true;
  const auto idle = std::find_if(open.begin(), open.end(), [](const auto& one) { return one->idle(); });
  if (idle == open.end()) return false;
  (*idle)->close();
  open.erase(idle);
  return true;
}

void Server::State::accept() {
  if (accepting || stopping || sessions.open.size() > options.connections) return;
  accepting = true;
  acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
    accepting = false;
    accepted(error, std::move(socket));
  });
}

void Server::State::accepted(const error_code& error, tcp::socket socket) {
  if (stopping) return;
  if (error) {
    // Descriptors run out and come back; what asks for a toxic's removal must not be lost over it.
    retry.expires_after(accept_retry);
    retry.async_wait([this](const error_code& aborted) {
      if (!aborted) accept();
    });
    return;
  }
  const bool room = make_room();
  auto session = std::make_shared<HttpSession>(std::move(socket), sessions);
  sessions.open.push_back(session);
  session->await(options.read_time);
  // With every place busy this one is over the limit, and nobody is accepted until one ends.
  if (room) accept();
}

void Server::State::run() {
  sessions.one_ended = [this] { accept(); };
  accept();
  io.run();
}

Server::Server() : state_(std::make_unique<State>()) {}

base::Expected<std::unique_ptr<Server>> Server::start(base::UniqueFd listener, const ServerOptions& options,
                                                      Handler handler, Prepare prepare) {
  std::unique_ptr<Server> server(new Server());
  auto& state = *server->state_;
  state.options = options;
  state.handler = std::move(handler);
  state.prepare = std::move(prepare);
  if (const auto listening = state.listen(std::move(listener)); !listening) return listening.error();
  state.thread = std::thread([&state] { state.run(); });
  return server;
}

Server::~Server() { stop(); }

void Server::stop() {
  if (!state_->thread.joinable()) return;
  asio::post(state_->io, [&state = *state_] {
    state.stopping = true;
    error_code ignored;
    state.acceptor.close(ignored);
    state.retry.cancel();
    for (const auto& session : state.sessions.open) session->close();
    state.sessions.open.clear();
  });
  state_->thread.join();
}

}  // namespace leafcutter::http
