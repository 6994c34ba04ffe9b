#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <list>
#include <thread>
#include <vector>

#include "actors/transport/tls_session.hpp"
#include "actors/trust/enrolment.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;
using Clock = std::chrono::steady_clock;

/// Shows the authority's certificate as well, for a host that knows no more than its fingerprint; asks for a
/// certificate, but takes none for an answer, too: a host that joins has none.
Expected<TlsContextPtr> enrolment_context(const KeyFolder& folder) {
  const auto material = folder.material();
  if (!material) return material.error();
  auto context = make_tls_context(*material);
  if (!context) return context.error();
  const auto authority = certificate_from_pem(material->authority);
  if (!authority) return authority.error();
  SSL_CTX_set_verify(context->get(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_add1_chain_cert(context->get(), authority->get()) != 1)
    return openssl_error("cannot show the authority's certificate");
  return context;
}

Expected<base::UniqueFd> listen_at(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const auto where = host + ":" + std::to_string(port);
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0)
    return Error{ErrorCode::bad_input, "no address of " + host};
  const std::unique_ptr<addrinfo, decltype([](addrinfo* all) { ::freeaddrinfo(all); })> owner(list);
  base::UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int one = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      ::bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return base::system_error("cannot listen on " + where + " (another port would do)", errno);
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

struct Visitor {
  base::UniqueFd fd;
  TlsContextPtr context;
  std::unique_ptr<TlsSession> session;
  Clock::time_point until;
  std::string in, out;
  bool answered = false;
};

class PollingEnrolmentServer final : public EnrolmentServer {
 public:
  PollingEnrolmentServer(KeyFolder folder, Options options)
      : folder_(std::move(folder)),
        gate_(folder_),
        options_(std::move(options)),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~PollingEnrolmentServer() override {
    stop_ = true;
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }
  Status open() {
    if (!wake_) return base::system_error("eventfd", errno);
    // An authority's folder that can be used, and is: said now rather than to the first visitor.
    if (const auto context = enrolment_context(folder_); !context) return context.error();
    if (const auto key = folder_.authority_key(); !key) return key.error();
    auto fd = listen_at(options_.host, options_.port);
    if (!fd) return fd.error();
    listener_ = std::move(*fd);
    port_ = port_of(listener_.get());
    thread_ = std::thread([this] { run(); });
    return base::ok();
  }
  std::uint16_t port() const override { return port_; }
  EnrolmentCounters counters() const override { return {accepted_, enrolled_, refused_, broken_}; }

 private:
  void run() {
    while (!stop_) {
      std::vector<pollfd> wait = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      auto until = Clock::now() + std::chrono::hours(1);
      for (const auto& visitor : visitors_) {
        const bool writes = visitor.session->wants_write() || !visitor.out.empty();
        wait.push_back({visitor.fd.get(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
        until = std::min(until, visitor.until);
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      if (::poll(wait.data(), wait.size(), static_cast<int>(std::max<std::int64_t>(left, 0))) < 0 && errno != EINTR)
        return;
      std::size_t at = 2;
      for (auto visitor = visitors_.begin(); visitor != visitors_.end(); ++at) {
        const bool stays = wait[at].revents == 0 || step(*visitor);
        const bool late = stays && Clock::now() >= visitor->until;
        if (late && !visitor->answered) ++broken_;
        visitor = stays && !late ? std::next(visitor) : visitors_.erase(visitor);
      }
      if (wait[1].revents != 0) welcome();
    }
  }

  void welcome() {
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    ++accepted_;
    auto context = enrolment_context(folder_);
    if (!context) return tell(context.error().message);
    // The oldest goes: whoever is honest is done in a moment.
    if (visitors_.size() >= options_.visitors_at_most) {
      visitors_.pop_front();
      ++broken_;
    }
    Visitor visitor;
    const auto admit = [this](const Peer& peer) { return peer.key.empty() ? base::ok() : gate_.admit(peer); };
    visitor.session = std::make_unique<TlsSession>(**context, fd.get(), true, admit);
    visitor.fd = std::move(fd);
    visitor.context = std::move(*context);
    visitor.until = Clock::now() + options_.within;
    visitors_.push_back(std::move(visitor));
  }

  /// What can be done now; false when the visit is over.
  bool step(Visitor& visitor) {
    if (!visitor.session->established()) {
      const auto progress = visitor.session->handshake();
      if (progress == TlsSession::Progress::failed) return over(visitor);
      if (progress == TlsSession::Progress::again) return true;
    }
    if (!visitor.answered && !listen(visitor)) return over(visitor);
    while (!visitor.out.empty()) {
      std::size_t count = 0;
      if (!visitor.session->write(count, visitor.out.data(), visitor.out.size())) return false;
      if (count == 0) return true;
      visitor.out.erase(0, count);
    }
    return !visitor.answered;
  }

  bool over(const Visitor& visitor) {
    if (!visitor.answered) ++broken_;
    return false;
  }

  /// False when what comes is no request.
  bool listen(Visitor& visitor) {
    char bytes[4096];
    for (std::size_t count = 1; count > 0;) {
      if (!visitor.session->read(count, bytes, sizeof bytes)) return false;
      visitor.in.append(bytes, count);
      const auto message = unframed(visitor.in);
      if (!message) return false;
      if (!*message) continue;
      const auto request = decode_enrolment_request(**message);
      if (!request) return false;
      answer(visitor, *request);
      return true;
    }
    return true;
  }

  void answer(Visitor& visitor, const EnrolmentRequest& request) {
    std::string sentence;
    const auto& peer = visitor.session->peer();
    const auto said = answer_enrolment(folder_, request, peer.key.empty() ? nullptr : &peer,
                                       std::chrono::system_clock::now(), sentence);
    ++(said.refusal.empty() ? enrolled_ : refused_);
    tell(sentence);
    visitor.out = framed(encode(said));
    visitor.answered = true;
  }

  void tell(const std::string& sentence) const {
    if (options_.on_news) options_.on_news(sentence);
  }

  KeyFolder folder_;
  Gate gate_;
  Options options_;
  base::UniqueFd wake_, listener_;
  std::uint16_t port_ = 0;
  std::list<Visitor> visitors_;
  std::atomic<std::uint64_t> accepted_{0}, enrolled_{0}, refused_{0}, broken_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

EnrolmentServer::~EnrolmentServer() = default;

Expected<std::unique_ptr<EnrolmentServer>> EnrolmentServer::start(const KeyFolder& folder, Options options) {
  auto server = std::make_unique<PollingEnrolmentServer>(folder, std::move(options));
  if (const auto opened = server->open(); !opened) return opened.error();
  return std::unique_ptr<EnrolmentServer>(std::move(server));
}

}  // namespace leafcutter::actors
