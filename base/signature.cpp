#include "base/signature.hpp"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::base {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeDigestContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using BioPtr = std::unique_ptr<BIO, FreeBio>;
using SignatureKeyPtr = std::unique_ptr<EVP_PKEY, FreeKey>;
using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, FreeDigestContext>;

const unsigned char* as_unsigned(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// A terminal is never asked for a passphrase.
int no_passphrase_at_all(char*, int, int, void*) { return -1; }

/// OpenSSL keeps what it does not like for whoever asks next.
Error no_ed25519(const std::string& what) {
  ERR_clear_error();
  return {ErrorCode::bad_input, what + " holds no Ed25519 key; \"openssl genpkey -algorithm ed25519\" makes one", {}};
}

std::string raw_public(const EVP_PKEY* key) {
  std::array<unsigned char, public_key_bytes> bytes{};
  auto size = bytes.size();
  if (EVP_PKEY_get_raw_public_key(key, bytes.data(), &size) != 1 || size != bytes.size())
    throw std::runtime_error("OpenSSL does not say an Ed25519 public key");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

struct SigningKey::Held {
  SignatureKeyPtr key;
};

Expected<SigningKey> SigningKey::generate() {
  SignatureKeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return Error{ErrorCode::unavailable, "OpenSSL makes no Ed25519 key", {}};
  SigningKey made;
  made.held_ = std::make_shared<const Held>(Held{std::move(key)});
  return made;
}

Expected<SigningKey> SigningKey::from_pem(std::string_view pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  SignatureKeyPtr key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase_at_all, nullptr) : nullptr);
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) return no_ed25519("it");
  SigningKey made;
  made.held_ = std::make_shared<const Held>(Held{std::move(key)});
  return made;
}

Expected<SigningKey> SigningKey::load(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return system_error("cannot read the key " + path, errno);
  if ((about.st_mode & 077) != 0)
    return Error{ErrorCode::bad_input, "others can read the key " + path + "; chmod 600 would do", {}};
  const auto text = read_file(path);
  if (!text) return text.error();
  auto key = from_pem(*text);
  if (!key) return no_ed25519(path);
  return key;
}

std::string SigningKey::pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), held_->key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    throw std::runtime_error("OpenSSL does not write a key");
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

Status SigningKey::save(const std::string& path) const {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    auto error = system_error("cannot create the key " + path, errno);
    if (errno == EEXIST) error.code = ErrorCode::conflict;
    return error;
  }
  const auto text = pem();
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(fd.get()) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return system_error("cannot write the key " + path, error);
  }
  return ok();
}

std::string SigningKey::public_key() const { return raw_public(held_->key.get()); }

std::string SigningKey::sign(std::string_view message) const {
  const DigestContextPtr context(EVP_MD_CTX_new());
  std::array<unsigned char, signature_bytes> bytes{};
  auto size = bytes.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, held_->key.get()) != 1 ||
      EVP_DigestSign(context.get(), bytes.data(), &size, as_unsigned(message), message.size()) != 1)
    throw std::runtime_error("OpenSSL does not sign");
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

bool verify_signature(std::string_view public_key, std::string_view message, std::string_view signature) {
  if (public_key.size() != public_key_bytes || signature.size() != signature_bytes) return false;
  const SignatureKeyPtr key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, as_unsigned(public_key), public_key.size()));
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool good = key && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                    EVP_DigestVerify(context.get(), as_unsigned(signature), signature.size(), as_unsigned(message),
                                     message.size()) == 1;
  if (!good) ERR_clear_error();
  return good;
}

Expected<std::string> read_public_key(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (auto raw = from_hex(text); raw.size() == public_key_bytes) return raw;
  const auto in = [&] { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); };
  const auto first = in(), second = in();
  SignatureKeyPtr key(PEM_read_bio_PUBKEY(first.get(), nullptr, no_passphrase_at_all, nullptr));
  if (!key) key.reset(PEM_read_bio_PrivateKey(second.get(), nullptr, no_passphrase_at_all, nullptr));
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
    ERR_clear_error();
    return Error{ErrorCode::bad_input, "it is no Ed25519 key: neither 64 hexadecimal digits nor PEM", {}};
  }
  ERR_clear_error();
  return raw_public(key.get());
}

std::string to_hex(std::string_view bytes) {
  constexpr auto digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string from_hex(std::string_view digits) {
  std::string out;
  if (digits.size() % 2 != 0) return {};
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

}  // namespace leafcutter::base
