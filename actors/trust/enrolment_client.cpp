#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "actors/transport/dial.hpp"
#include "actors/transport/tls_session.hpp"
#include "actors/trust/enrolment.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;
using Clock = std::chrono::steady_clock;

constexpr int dial_again_ms = 100;

using ChainPtr = std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * chain) { sk_X509_free(chain); })>;

/// Believes the one authority whose key has this fingerprint, if the other side shows it.
int verify_pinned(X509_STORE_CTX* store, void* pinned) {
  const auto& authority = *static_cast<const std::string*>(pinned);
  auto* shown = X509_STORE_CTX_get0_untrusted(store);
  for (int i = 0; i < sk_X509_num(shown); ++i) {
    auto* certificate = sk_X509_value(shown, i);
    if (key_fingerprint(*certificate) != authority) continue;
    const ChainPtr trusted(sk_X509_new_null());
    if (!trusted || sk_X509_push(trusted.get(), certificate) == 0) return 0;
    X509_STORE_CTX_set0_trusted_stack(store, trusted.get());
    return X509_verify_cert(store);
  }
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED);
  return 0;
}

/// `pinned` outlives the context.
Expected<TlsContextPtr> pinned_context(std::string& pinned) {
  TlsContextPtr context(SSL_CTX_new(TLS_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1)
    return openssl_error("OpenSSL has no TLS 1.3");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), verify_pinned, &pinned);
  return context;
}

Status only_a_coordinator(const Peer& peer) {
  if (peer.identity.role == Role::coordinator) return base::ok();
  return Error{ErrorCode::protocol, "it is " + describe(peer.identity) + " and not a coordinator"};
}

/// Waits for the socket, until the deadline.
Status wait_for(int fd, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return Error{ErrorCode::timeout, "no answer in time"};
    pollfd wait{fd, events, 0};
    const auto ready = ::poll(&wait, 1, static_cast<int>(left));
    if (ready > 0) return base::ok();
    if (ready < 0 && errno != EINTR) return base::system_error("poll", errno);
  }
}

/// One request and its answer.
Expected<EnrolmentAnswer> ask(SSL_CTX& context, int fd, const EnrolmentRequest& request, Clock::time_point until) {
  TlsSession session(context, fd, false, only_a_coordinator);
  for (auto progress = session.handshake(); progress != TlsSession::Progress::done; progress = session.handshake()) {
    if (progress == TlsSession::Progress::failed)
      return Error{ErrorCode::protocol, "the other side is not who it should be: " + session.failure()};
    if (auto ready = wait_for(fd, session.wants_write() ? POLLOUT : POLLIN, until); !ready) return ready.error();
  }
  auto out = framed(encode(request));
  while (!out.empty()) {
    std::size_t count = 0;
    if (!session.write(count, out.data(), out.size())) return Error{ErrorCode::io, "the other side hung up"};
    out.erase(0, count);
    if (count > 0) continue;
    if (auto ready = wait_for(fd, POLLOUT, until); !ready) return ready.error();
  }
  std::string in;
  for (;;) {
    char bytes[4096];
    std::size_t count = 0;
    if (!session.read(count, bytes, sizeof bytes)) return Error{ErrorCode::io, "the other side hung up"};
    in.append(bytes, count);
    const auto message = unframed(in);
    if (!message) return message.error();
    if (*message) return decode_enrolment_answer(**message);
    if (count > 0) continue;
    if (auto ready = wait_for(fd, POLLIN, until); !ready) return ready.error();
  }
}

Expected<EnrolmentAnswer> ask_at(const EnrolmentDoor& door, SSL_CTX& context, const EnrolmentRequest& request) {
  const auto where = door.host + ":" + std::to_string(door.port);
  const auto until = Clock::now() + door.within;
  auto fd = dial(door.host, door.port);
  // A host that has just been set up may be there before its authority.
  while (!fd && Clock::now() < until) {
    ::poll(nullptr, 0, dial_again_ms);
    fd = dial(door.host, door.port);
  }
  if (!fd) return Error{fd.error().code, "cannot reach " + where + ": " + fd.error().message};
  auto answer = ask(context, fd->get(), request, Clock::now() + door.within);
  if (!answer) return Error{answer.error().code, where + ": " + answer.error().message};
  if (!answer->refusal.empty()) return Error{ErrorCode::bad_input, where + " refuses: " + answer->refusal};
  return answer;
}

}  // namespace

Expected<KeyFolder> join(const EnrolmentDoor& door, const JoinToken& token, const std::string& folder) {
  // Before the token is used up.
  if (const auto empty = KeyFolder::check_empty(folder); !empty) return empty.error();
  const auto key = new_key();
  if (!key) return key.error();
  const auto request = request_pem(**key), text = private_pem(**key);
  if (!request) return request.error();
  if (!text) return text.error();
  auto pinned = token.authority;
  const auto context = pinned_context(pinned);
  if (!context) return context.error();
  const auto answer = ask_at(door, **context, {token.secret, *request, 0});
  if (!answer) return answer.error();
  return KeyFolder::keep(folder, answer->certificate, *text, answer->authority, answer->campaign);
}

Status rotate_identity(const EnrolmentDoor& door, const KeyFolder& folder, std::chrono::seconds overlap) {
  const auto material = folder.material();
  if (!material) return material.error();
  const auto context = make_tls_context(*material);
  if (!context) return context.error();
  const auto key = new_key();
  if (!key) return key.error();
  const auto request = request_pem(**key), text = private_pem(**key);
  if (!request) return request.error();
  if (!text) return text.error();
  const auto answer = ask_at(door, **context, {"", *request, overlap.count()});
  if (!answer) return answer.error();
  return folder.replace_identity(answer->certificate, *text);
}

}  // namespace leafcutter::actors
