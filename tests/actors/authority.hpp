// An authority of a test's own, and peers that dial a transport byte by byte.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <memory>
#include <string>

#include "actors/transport/tls_session.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::tests {

using namespace std::chrono_literals;

/// A node of the tests' fleet.
inline const actors::Identity berlin{actors::Role::node, "berlin"};

class Authority {
 public:
  Authority() : key_(std::move(*actors::new_key())) {
    certificate_ = std::move(*actors::issue_authority(*key_, "a test", actors::valid_for(now(), 1h)));
  }
  static actors::WallTime now() { return std::chrono::system_clock::now(); }

  actors::TlsMaterial issue(actors::Role role, const std::string& name,
                            const actors::Validity& validity = actors::valid_for(now(), 1h)) const {
    const auto key = std::move(*actors::new_key());
    const auto certificate = std::move(*actors::issue({role, name}, *key, *certificate_, *key_, validity));
    return {*actors::pem(*certificate), *actors::private_pem(*key), *actors::pem(*certificate_)};
  }
  std::string pem() const { return *actors::pem(*certificate_); }

 private:
  actors::KeyPtr key_;
  actors::CertificatePtr certificate_;
};

/// A TCP connection to loopback that says what it is told to.
class RawPeer {
 public:
  explicit RawPeer(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  int fd() const { return fd_.get(); }
  bool send(std::string_view bytes) const {
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// Nothing more comes: the other side has closed or reset it. What comes before is thrown away.
  bool closed(std::chrono::milliseconds within = 10s) const {
    const auto until = std::chrono::steady_clock::now() + within;
    char bytes[4096];
    while (std::chrono::steady_clock::now() < until) {
      pollfd wait{fd_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      if (::recv(fd_.get(), bytes, sizeof bytes, 0) <= 0) return true;
    }
    return false;
  }

 private:
  base::UniqueFd fd_;
};

/// The same under TLS.
class TlsPeer {
 public:
  TlsPeer(std::uint16_t port, const actors::TlsMaterial& material)
      : raw_(port),
        context_(std::move(*actors::make_tls_context(material))),
        session_(*context_, raw_.fd(), false, [](const actors::Peer&) { return base::ok(); }) {
    while (session_.handshake() == actors::TlsSession::Progress::again) {
    }
  }
  bool established() const { return session_.established(); }
  const actors::Peer& other() const { return session_.peer(); }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t count = 0;
      if (!session_.write(count, bytes.data(), bytes.size())) return false;
      bytes.remove_prefix(count);
    }
    return true;
  }
  /// What comes next; empty: the connection is over.
  std::string receive() {
    std::string bytes(65536, '\0');
    std::size_t count = 0;
    if (!session_.read(count, bytes.data(), bytes.size())) return {};
    bytes.resize(count);
    return bytes;
  }
  bool closed() const { return raw_.closed(); }
  const RawPeer& raw() const { return raw_; }

 private:
  RawPeer raw_;
  actors::TlsContextPtr context_;
  actors::TlsSession session_;
};

}  // namespace leafcutter::tests
