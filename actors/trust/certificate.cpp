#include "actors/trust/certificate.hpp"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>

#include "base/digest.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;

/// A key or certificate of ours has less than a thousand.
constexpr std::size_t pem_bytes = 16 * 1024;
constexpr auto clocks_apart = std::chrono::minutes(5);

using NamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslDeleter<GENERAL_NAMES_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>>;
using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, OpensslDeleter<EVP_MD_CTX_free>>;

bool add_extension(X509& certificate, X509& issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

bool set_serial(X509& certificate) {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) return false;
  random[0] = (random[0] & 0x7f) | 0x40;  // positive, and of full length
  const std::unique_ptr<BIGNUM, OpensslDeleter<BN_free>> number(
      BN_bin2bn(random.data(), static_cast<int>(random.size()), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool set_time(ASN1_TIME* field, WallTime time) {
  return ASN1_TIME_set(field, std::chrono::system_clock::to_time_t(time)) != nullptr;
}

/// Everything but extensions and signature.
CertificatePtr blank(const std::string& name, EVP_PKEY& key, const Validity& validity) {
  CertificatePtr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 || !set_serial(*certificate))
    return nullptr;
  auto* subject = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(name.data());
  if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, static_cast<int>(name.size()), -1, 0) != 1 ||
      !set_time(X509_getm_notBefore(certificate.get()), validity.from) ||
      !set_time(X509_getm_notAfter(certificate.get()), validity.until) || X509_set_pubkey(certificate.get(), &key) != 1)
    return nullptr;
  return certificate;
}

Expected<KeyPtr> only_ed25519(KeyPtr key, const char* what) {
  if (!key) return openssl_error(std::string("no ") + what + " can be read", ErrorCode::bad_input);
  if (EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519)
    return Error{ErrorCode::bad_input, std::string("a ") + what + " that is not Ed25519's"};
  return key;
}

Expected<BioPtr> bounded_reader(std::string_view text, const char* what) {
  if (text.size() > pem_bytes)
    return Error{ErrorCode::bad_input, std::string(what) + " of " + std::to_string(text.size()) + " bytes; at most " +
                                           std::to_string(pem_bytes) + " are read"};
  return reader_of(text);
}

/// A file that asks for a passphrase would have OpenSSL ask the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

template <class Write>
Expected<std::string> written(Write write, const char* what) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return openssl_error(std::string("cannot write ") + what);
  return bytes_of(*out);
}

}  // namespace

Validity valid_for(WallTime now, std::chrono::seconds span) { return {now - clocks_apart, now + span}; }

Expected<KeyPtr> new_key() {
  KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return openssl_error("OpenSSL makes no Ed25519 key");
  return key;
}

Expected<std::string> private_pem(EVP_PKEY& key) {
  return written([&](BIO* out) { return PEM_write_bio_PrivateKey(out, &key, nullptr, nullptr, 0, nullptr, nullptr); },
                 "a private key");
}

Expected<std::string> public_pem(EVP_PKEY& key) {
  return written([&](BIO* out) { return PEM_write_bio_PUBKEY(out, &key); }, "a public key");
}

Expected<KeyPtr> private_from_pem(std::string_view text) {
  const auto in = bounded_reader(text, "a private key");
  if (!in) return in.error();
  return only_ed25519(KeyPtr(PEM_read_bio_PrivateKey(in->get(), nullptr, no_passphrase, nullptr)), "private key");
}

Expected<KeyPtr> public_from_pem(std::string_view text) {
  const auto in = bounded_reader(text, "a public key");
  if (!in) return in.error();
  return only_ed25519(KeyPtr(PEM_read_bio_PUBKEY(in->get(), nullptr, no_passphrase, nullptr)), "public key");
}

std::string fingerprint(EVP_PKEY& key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(&key, &der);
  if (size <= 0) return {};
  const std::unique_ptr<unsigned char, decltype([](unsigned char* bytes) { OPENSSL_free(bytes); })> owner(der);
  return base::sha256({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
}

Expected<CertificatePtr> issue_authority(EVP_PKEY& key, const std::string& name, const Validity& validity) {
  auto certificate = blank(name, key, validity);
  const bool well = certificate &&
                    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())) == 1 &&
                    add_extension(*certificate, *certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(*certificate, *certificate, NID_key_usage, "critical,keyCertSign") &&
                    add_extension(*certificate, *certificate, NID_subject_key_identifier, "hash") &&
                    X509_sign(certificate.get(), &key, nullptr) > 0;
  if (!well) return openssl_error("cannot make the authority's certificate");
  return certificate;
}

Expected<CertificatePtr> issue(const Identity& identity, EVP_PKEY& subject_key, X509& authority,
                               EVP_PKEY& authority_key, const Validity& validity) {
  if (const auto named = check_peer_name(identity.name); !named) return named.error();
  auto certificate = blank(identity.name, subject_key, validity);
  // Either end of a connection may be asked for its certificate, but a coordinator alone is dialled.
  const char* usage = identity.role == Role::coordinator ? "serverAuth,clientAuth" : "clientAuth";
  const bool well = certificate && X509_set_issuer_name(certificate.get(), X509_get_subject_name(&authority)) == 1 &&
                    add_extension(*certificate, authority, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(*certificate, authority, NID_key_usage, "critical,digitalSignature") &&
                    add_extension(*certificate, authority, NID_ext_key_usage, usage) &&
                    add_extension(*certificate, authority, NID_authority_key_identifier, "keyid") &&
                    add_extension(*certificate, authority, NID_subject_alt_name, "URI:" + identity_uri(identity)) &&
                    X509_sign(certificate.get(), &authority_key, nullptr) > 0;
  if (!well) return openssl_error("cannot make a certificate for " + describe(identity));
  return certificate;
}

Expected<std::string> pem(X509& certificate) {
  return written([&](BIO* out) { return PEM_write_bio_X509(out, &certificate); }, "a certificate");
}

Expected<CertificatePtr> certificate_from_pem(std::string_view text) {
  const auto in = bounded_reader(text, "a certificate");
  if (!in) return in.error();
  CertificatePtr certificate(PEM_read_bio_X509(in->get(), nullptr, no_passphrase, nullptr));
  if (!certificate) return openssl_error("no certificate can be read", ErrorCode::bad_input);
  return certificate;
}

Expected<Identity> identity_of(const X509& certificate) {
  const NamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  const Error none{ErrorCode::protocol, "a certificate that names nobody"};
  if (!names || sk_GENERAL_NAME_num(names.get()) != 1) return none;
  const auto* entry = sk_GENERAL_NAME_value(names.get(), 0);
  if (entry->type != GEN_URI) return none;
  const auto* uri = entry->d.uniformResourceIdentifier;
  return identity_from_uri(
      {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)), static_cast<std::size_t>(ASN1_STRING_length(uri))});
}

std::string key_fingerprint(const X509& certificate) {
  auto* key = X509_get0_pubkey(&certificate);
  return key == nullptr ? std::string() : fingerprint(*key);
}

WallTime expiry_of(const X509& certificate) {
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &end) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&end));
}

Expected<std::string> request_pem(EVP_PKEY& key) {
  const RequestPtr request(X509_REQ_new());
  const bool well = request && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), &key) == 1 && X509_REQ_sign(request.get(), &key, nullptr) > 0;
  if (!well) return openssl_error("cannot make a certificate request");
  return written([&](BIO* out) { return PEM_write_bio_X509_REQ(out, request.get()); }, "a certificate request");
}

Expected<KeyPtr> requested_key(std::string_view text) {
  const auto in = bounded_reader(text, "a certificate request");
  if (!in) return Error{ErrorCode::protocol, in.error().message};
  const RequestPtr request(PEM_read_bio_X509_REQ(in->get(), nullptr, no_passphrase, nullptr));
  if (!request) return openssl_error("no certificate request can be read", ErrorCode::protocol);
  auto key = only_ed25519(KeyPtr(X509_REQ_get_pubkey(request.get())), "public key");
  if (!key) return Error{ErrorCode::protocol, key.error().message};
  if (X509_REQ_verify(request.get(), key->get()) != 1)
    return openssl_error("a certificate request that its own key did not sign", ErrorCode::protocol);
  return key;
}

Expected<std::string> sign(EVP_PKEY& key, std::string_view bytes) {
  const DigestContextPtr context(EVP_MD_CTX_new());
  std::array<unsigned char, 64> signature{};
  std::size_t size = signature.size();
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, &key) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size, data, bytes.size()) != 1)
    return openssl_error("cannot sign");
  return std::string(reinterpret_cast<const char*>(signature.data()), size);
}

bool verify(EVP_PKEY& key, std::string_view bytes, std::string_view signature) {
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool well =
      context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, &key) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
  if (!well) (void)openssl_error("");
  return well;
}

}  // namespace leafcutter::actors
