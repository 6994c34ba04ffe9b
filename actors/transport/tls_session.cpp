#include "actors/transport/tls_session.hpp"

#include <openssl/err.h>
#include <sys/socket.h>

#include <cerrno>

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;

/// Two certificates of ours have less than two thousand bytes.
constexpr long certificate_chain_bytes = 16 * 1024;

// OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE when the peer has gone, in whatever program we
// are.

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

bool wants_another_try() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int send_quietly(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && wants_another_try()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int receive_some(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto received = ::recv(socket_of(bio), bytes, static_cast<std::size_t>(size), 0);
  if (received < 0 && wants_another_try()) BIO_set_retry_read(bio);
  if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(received);
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

using BioMethodPtr = std::unique_ptr<BIO_METHOD, OpensslDeleter<BIO_meth_free>>;

const BIO_METHOD* quiet_socket() {
  static const BioMethodPtr method = [] {
    BioMethodPtr made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quiet socket"));
    const bool well = made && BIO_meth_set_write(made.get(), send_quietly) == 1 &&
                      BIO_meth_set_read(made.get(), receive_some) == 1 &&
                      BIO_meth_set_ctrl(made.get(), control_socket) == 1;
    return well ? std::move(made) : nullptr;
  }();
  return method.get();
}

/// The socket is not closed with it.
BIO* bio_of(int fd) {
  if (quiet_socket() == nullptr) return nullptr;
  auto* bio = BIO_new(quiet_socket());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

/// Why OpenSSL gave up, in words for a log.
std::string why_failed(const SSL& ssl) {
  if (const auto verdict = SSL_get_verify_result(&ssl); verdict != X509_V_OK)
    return std::string("its certificate: ") + X509_verify_cert_error_string(verdict);
  const auto error = openssl_error("").message;
  return error.empty() ? "the connection ended" : "no handshake" + error;
}

base::Expected<Peer> shown_peer(SSL& ssl) {
  const auto* certificate = SSL_get0_peer_certificate(&ssl);
  if (certificate == nullptr) {
    // OpenSSL lets nobody through here whom the context asks to show one.
    if (SSL_is_server(&ssl) == 1 && (SSL_get_verify_mode(&ssl) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) == 0) return Peer{};
    return Error{ErrorCode::protocol, "no certificate"};
  }
  const auto identity = identity_of(*certificate);
  if (!identity) return identity.error();
  return Peer{*identity, key_fingerprint(*certificate), expiry_of(*certificate)};
}

bool use_certificate(SSL_CTX& context, const TlsMaterial& material, base::Status& status) {
  const auto own = certificate_from_pem(material.certificate);
  const auto key = private_from_pem(material.key);
  const auto authority = certificate_from_pem(material.authority);
  for (const auto* error :
       {own ? nullptr : &own.error(), key ? nullptr : &key.error(), authority ? nullptr : &authority.error()}) {
    if (error == nullptr) continue;
    status = *error;
    return false;
  }
  return SSL_CTX_use_certificate(&context, own->get()) == 1 && SSL_CTX_use_PrivateKey(&context, key->get()) == 1 &&
         SSL_CTX_check_private_key(&context) == 1 &&
         X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority->get()) == 1;
}

}  // namespace

base::Expected<TlsContextPtr> make_tls_context(const TlsMaterial& material) {
  TlsContextPtr context(SSL_CTX_new(TLS_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1)
    return openssl_error("OpenSSL has no TLS 1.3");
  base::Status status = base::ok();
  if (!use_certificate(*context, material, status)) {
    if (!status) return status.error();
    return openssl_error("the key and the certificates do not belong together", ErrorCode::bad_input);
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context.get(), 1);
  SSL_CTX_set_max_cert_list(context.get(), certificate_chain_bytes);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A resumed session would not be asked for its certificate again.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  return context;
}

TlsSession::TlsSession(SSL_CTX& context, int fd, bool server, Admit admit)
    : ssl_(SSL_new(&context)), admit_(std::move(admit)) {
  auto* bio = ssl_ ? bio_of(fd) : nullptr;
  failed_ = bio == nullptr;
  if (failed_) return;
  SSL_set_bio(ssl_.get(), bio, bio);
  if (server)
    SSL_set_accept_state(ssl_.get());
  else
    SSL_set_connect_state(ssl_.get());
}

TlsSession::Progress TlsSession::handshake() {
  if (failed_) return Progress::failed;
  if (established()) return Progress::done;
  // The queue of errors belongs to the thread: what another connection left in it would end this one.
  ERR_clear_error();
  const auto result = SSL_do_handshake(ssl_.get());
  if (result != 1) {
    if (again(result)) return Progress::again;
    failure_ = why_failed(*ssl_);
    failed_ = true;
    return Progress::failed;
  }
  wants_write_ = false;
  const auto peer = shown_peer(*ssl_);
  const auto admitted = peer ? admit_(*peer) : base::Status(peer.error());
  if (admitted) peer_ = *peer;
  if (admitted) return Progress::done;
  failure_ = admitted.error().message;
  turned_away_ = failed_ = true;
  return Progress::failed;
}

bool TlsSession::read(std::size_t& count, void* buffer, std::size_t size) {
  count = 0;
  if (failed_) return false;
  ERR_clear_error();
  std::size_t done = 0;
  const auto result = SSL_read_ex(ssl_.get(), buffer, size, &done);
  if (result == 1) count = done;
  return result == 1 || again(result);
}

bool TlsSession::write(std::size_t& count, const void* buffer, std::size_t size) {
  count = 0;
  if (failed_) return false;
  ERR_clear_error();
  std::size_t done = 0;
  const auto result = SSL_write_ex(ssl_.get(), buffer, size, &done);
  if (result == 1) count = done;
  return result == 1 || again(result);
}

bool TlsSession::pending() const { return !failed_ && SSL_pending(ssl_.get()) > 0; }

bool TlsSession::again(int result) {
  const auto error = SSL_get_error(ssl_.get(), result);
  wants_write_ = error == SSL_ERROR_WANT_WRITE;
  return wants_write_ || error == SSL_ERROR_WANT_READ;
}

}  // namespace leafcutter::actors
