// What a host shows to be enrolled, once: for whom it was made, whose authority it belongs to, and a secret. One word
// of text: "leafcutter-join-1:node:berlin-1:AUTHORITY:SECRET".
#pragma once

#include <string>
#include <string_view>

#include "actors/trust/identity.hpp"
#include "base/error.hpp"

namespace leafcutter::actors {

struct JoinToken {
  Identity identity;
  std::string authority;  ///< fingerprint of its key: who answers must be of it
  std::string secret;     ///< 32 random bytes, in hex

  /// What the roll keeps of it.
  std::string hash() const;
};

base::Expected<JoinToken> new_join_token(const Identity& identity, const std::string& authority);
std::string to_text(const JoinToken& token);
/// White space around it is of no account. Errors: bad_input, without the text.
base::Expected<JoinToken> join_token_from(std::string_view text);

}  // namespace leafcutter::actors
