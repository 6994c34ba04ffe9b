// Ed25519 keys and the X.509 certificates of a fleet: one authority, and a certificate for each key that it has
// enrolled. All of it OpenSSL's.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "actors/trust/identity.hpp"
#include "actors/trust/openssl.hpp"

namespace leafcutter::actors {

using WallTime = std::chrono::system_clock::time_point;

struct Validity {
  WallTime from;
  WallTime until;
};
/// From a little before `now`, for clocks that disagree.
Validity valid_for(WallTime now, std::chrono::seconds span);

// --- keys; errors of reading are bad_input

base::Expected<KeyPtr> new_key();
base::Expected<std::string> private_pem(EVP_PKEY& key);
base::Expected<std::string> public_pem(EVP_PKEY& key);
base::Expected<KeyPtr> private_from_pem(std::string_view pem);
base::Expected<KeyPtr> public_from_pem(std::string_view pem);

/// SHA-256 of the public key (SubjectPublicKeyInfo, DER), 64 hex digits.
std::string fingerprint(EVP_PKEY& key);

// --- certificates

base::Expected<CertificatePtr> issue_authority(EVP_PKEY& key, const std::string& name, const Validity& validity);
base::Expected<CertificatePtr> issue(const Identity& identity, EVP_PKEY& subject_key, X509& authority,
                                     EVP_PKEY& authority_key, const Validity& validity);
base::Expected<std::string> pem(X509& certificate);
base::Expected<CertificatePtr> certificate_from_pem(std::string_view pem);

/// What the one URI in it says. Errors: protocol (none, several, another scheme).
base::Expected<Identity> identity_of(const X509& certificate);
std::string key_fingerprint(const X509& certificate);
WallTime expiry_of(const X509& certificate);

// --- requests: a public key, signed with its private one

base::Expected<std::string> request_pem(EVP_PKEY& key);
/// The key, once the signature was found to be its own. Errors: protocol.
base::Expected<KeyPtr> requested_key(std::string_view pem);

// --- signatures

base::Expected<std::string> sign(EVP_PKEY& key, std::string_view bytes);
bool verify(EVP_PKEY& key, std::string_view bytes, std::string_view signature);

}  // namespace leafcutter::actors
