#include "actors/trust/join_token.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <vector>

#include "actors/trust/openssl.hpp"
#include "base/digest.hpp"

namespace leafcutter::actors {

namespace {

constexpr std::string_view token_beginning = "leafcutter-join-1";
constexpr std::size_t token_digits = 64;

bool is_token_hex(std::string_view text) {
  return text.size() == token_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

base::Error not_a_token() {
  return {base::ErrorCode::bad_input,
          "that is not a join token: one is a word as `leafcutter keys token` prints it, beginning with " +
              std::string(token_beginning)};
}

}  // namespace

std::string JoinToken::hash() const { return base::sha256("leafcutter join token\n" + secret); }

base::Expected<JoinToken> new_join_token(const Identity& identity, const std::string& authority) {
  std::array<unsigned char, token_digits / 2> random{};
  if (RAND_priv_bytes(random.data(), random.size()) != 1) return openssl_error("OpenSSL has no random bytes");
  JoinToken token{identity, authority, {}};
  for (const auto byte : random) {
    token.secret += "0123456789abcdef"[byte >> 4];
    token.secret += "0123456789abcdef"[byte & 15];
  }
  return token;
}

std::string to_text(const JoinToken& token) {
  return std::string(token_beginning) + ":" + role_name(token.identity.role) + ":" + token.identity.name + ":" +
         token.authority + ":" + token.secret;
}

base::Expected<JoinToken> join_token_from(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  if (first == std::string_view::npos || text.size() > 4096) return not_a_token();
  text = text.substr(first, text.find_last_not_of(space) + 1 - first);
  std::vector<std::string_view> parts;
  while (parts.size() < 6) {
    const auto cut = text.find(':');
    parts.push_back(text.substr(0, cut));
    if (cut == std::string_view::npos) break;
    text.remove_prefix(cut + 1);
  }
  if (parts.size() != 5 || parts[0] != token_beginning || !is_token_hex(parts[3]) || !is_token_hex(parts[4]))
    return not_a_token();
  const auto role = role_from(parts[1]);
  if (!role || !check_peer_name(parts[2])) return not_a_token();
  return JoinToken{{*role, std::string(parts[2])}, std::string(parts[3]), std::string(parts[4])};
}

}  // namespace leafcutter::actors
