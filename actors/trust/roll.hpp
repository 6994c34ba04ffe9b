// The roll of a fleet: every key that its authority has enrolled, until when each is good, and the join tokens that are
// out. A value; the file it is kept in is key_folder.hpp's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/trust/certificate.hpp"
#include "actors/trust/identity.hpp"
#include "base/error.hpp"

namespace leafcutter::actors {

/// Times are seconds since 1970; 0: never.
struct EnrolledKey {
  Identity identity;
  std::string key;  ///< fingerprint
  std::int64_t enrolled = 0;
  std::int64_t expires = 0;  ///< with its certificate
  std::int64_t ends = 0;     ///< its successor is in use by then (rotation)
  std::int64_t revoked = 0;
  bool operator==(const EnrolledKey&) const = default;
};

/// A token's secret is not kept: who reads the roll cannot join.
struct JoinTicket {
  Identity identity;
  std::string hash;  ///< SHA-256 of the secret
  std::int64_t expires = 0;
  bool operator==(const JoinTicket&) const = default;
};

struct Roll {
  std::vector<EnrolledKey> keys;
  std::vector<JoinTicket> tickets;
  bool operator==(const Roll&) const = default;
};

inline constexpr std::int64_t ticket_seconds = 15 * 60;

std::string to_json(const Roll& roll);
/// Errors: bad_input.
base::Expected<Roll> roll_from_json(std::string_view text);

/// What a key may still be used for at `now`: "good", "revoked", "replaced", "expired".
const char* standing(const EnrolledKey& key, std::int64_t now);

/// Whether this peer is one of ours now. Errors: bad_input, with why not, for the other side's ears.
base::Status admit(const Roll& roll, const Identity& identity, std::string_view key, std::int64_t now);

/// A ticket for one identity; an earlier one for it is void. Errors: unavailable (too many are out).
base::Status add_ticket(Roll& roll, const Identity& identity, const std::string& hash, std::int64_t now);

/// Takes the ticket away: it is used up, whatever comes of it. Errors: bad_input (none such, or too late).
base::Expected<Identity> redeem(Roll& roll, const std::string& hash, std::int64_t now);

/// A new key for an identity; others of it are revoked (a host that was set up anew has none of them).
/// Errors: conflict (the key is enrolled already).
base::Status enrol(Roll& roll, const Identity& identity, const std::string& key, std::int64_t now,
                   std::int64_t expires);

/// A new key beside the one that is in use, which ends after `overlap`. Errors: conflict, bad_input (`old` is not
/// good).
base::Status rotate(Roll& roll, const std::string& old_key, const std::string& new_key, std::int64_t now,
                    std::int64_t expires, std::int64_t overlap);

/// Revokes the one good key that `which` names: its fingerprint's first digits, eight or more, or a name that has one
/// key only. Errors: bad_input.
base::Expected<EnrolledKey> revoke(Roll& roll, std::string_view which, std::int64_t now);

}  // namespace leafcutter::actors
