// Ed25519 signatures (RFC 8032) by OpenSSL: keys as PEM files (PKCS #8), public keys and signatures as raw bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::base {

inline constexpr std::size_t public_key_bytes = 32;
inline constexpr std::size_t signature_bytes = 64;

class SigningKey {
 public:
  static Expected<SigningKey> generate();
  /// Errors: bad_input (no Ed25519 key in it).
  static Expected<SigningKey> from_pem(std::string_view pem);
  /// Refuses a file that others than its owner can read.
  static Expected<SigningKey> load(const std::string& path);

  std::string pem() const;
  /// A new file that only its owner can read; an existing one is left alone (conflict).
  Status save(const std::string& path) const;

  std::string public_key() const;  ///< 32 bytes
  std::string sign(std::string_view message) const;

 private:
  struct Held;
  std::shared_ptr<const Held> held_;
};

/// Whether `signature` is that of `message` by `public_key`; false for anything malformed.
bool verify_signature(std::string_view public_key, std::string_view message, std::string_view signature);

/// A raw public key out of 64 hexadecimal digits, or of a PEM public or private key.
Expected<std::string> read_public_key(std::string_view text);

std::string to_hex(std::string_view bytes);
/// Nothing but pairs of hexadecimal digits; empty otherwise.
std::string from_hex(std::string_view digits);

}  // namespace leafcutter::base
