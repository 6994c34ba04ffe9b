#include "http/token.hpp"

#include <openssl/crypto.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>

#include "base/digest.hpp"
#include "base/text.hpp"

namespace leafcutter::http {
namespace {

constexpr std::size_t shortest_token = 16;

base::Status good_token(std::string_view token, const std::string& source) {
  const auto bad = [&](const std::string& why) {
    return base::Error{base::ErrorCode::bad_input, "the token in " + source + " " + why, {}};
  };
  if (token.size() < shortest_token)
    return bad("has " + std::to_string(token.size()) + " characters; " + std::to_string(shortest_token) +
               " or more would do (openssl rand -hex 32 makes one)");
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; }))
    return bad("has characters that a header cannot carry; letters and digits would do");
  return base::ok();
}

}  // namespace

base::Expected<std::string> read_token(const std::string& file, const char* variable) {
  std::string token, source;
  if (!file.empty()) {
    auto text = base::read_file(file);
    if (!text) return text.error();
    token = text->substr(0, text->find_first_of("\r\n"));
    source = file;
  } else if (const char* value = std::getenv(variable)) {
    token = value;
    source = variable;
  } else {
    return std::string();
  }
  if (const auto good = good_token(token, source); !good) return good.error();
  return token;
}

bool is_bearer_of(std::string_view authorization, std::string_view token) {
  constexpr std::string_view scheme = "bearer ";
  if (authorization.size() < scheme.size() || ::strncasecmp(authorization.data(), scheme.data(), scheme.size()) != 0)
    return false;
  authorization.remove_prefix(scheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  // Digests are of one length, whatever was sent.
  const auto given = base::sha256(authorization), wanted = base::sha256(token);
  return ::CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) == 0;
}

}  // namespace leafcutter::http
