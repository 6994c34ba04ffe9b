#include "actors/trust/roll.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;
using Json = nlohmann::json;

constexpr int roll_format = 1;
constexpr std::size_t tickets_at_most = 1000;
constexpr std::size_t shortest_prefix = 8;

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_good(const EnrolledKey& key, std::int64_t now) { return std::string_view(standing(key, now)) == "good"; }

Json json_of(const Identity& identity) { return {{"role", role_name(identity.role)}, {"name", identity.name}}; }

Expected<Identity> identity_from(const Json& entry) {
  const auto role = role_from(entry.at("role").get<std::string>());
  if (!role) return role.error();
  Identity identity{*role, entry.at("name").get<std::string>()};
  if (const auto named = check_peer_name(identity.name); !named) return named.error();
  return identity;
}

/// Throws where a key is missing or of another type.
Expected<Roll> read_roll(const Json& document) {
  if (document.at("format").get<int>() != roll_format)
    return Error{ErrorCode::bad_input, "a roll of format " + document.at("format").dump() + "; this release reads 1"};
  Roll roll;
  for (const auto& entry : document.at("keys")) {
    auto identity = identity_from(entry);
    if (!identity) return identity.error();
    EnrolledKey key{*identity,           entry.at("key"),  entry.at("enrolled"),
                    entry.at("expires"), entry.at("ends"), entry.at("revoked")};
    if (!is_digest(key.key)) return Error{ErrorCode::bad_input, "a key that is not a fingerprint: " + key.key};
    roll.keys.push_back(std::move(key));
  }
  for (const auto& entry : document.at("tickets")) {
    auto identity = identity_from(entry);
    if (!identity) return identity.error();
    JoinTicket ticket{*identity, entry.at("hash"), entry.at("expires")};
    if (!is_digest(ticket.hash)) return Error{ErrorCode::bad_input, "a ticket without a hash"};
    roll.tickets.push_back(std::move(ticket));
  }
  return roll;
}

const EnrolledKey* find_key(const Roll& roll, std::string_view key) {
  const auto found =
      std::find_if(roll.keys.begin(), roll.keys.end(), [&](const auto& each) { return each.key == key; });
  return found == roll.keys.end() ? nullptr : &*found;
}

}  // namespace

std::string to_json(const Roll& roll) {
  Json keys = Json::array(), tickets = Json::array();
  for (const auto& key : roll.keys) {
    auto entry = json_of(key.identity);
    entry.update({{"key", key.key},
                  {"enrolled", key.enrolled},
                  {"expires", key.expires},
                  {"ends", key.ends},
                  {"revoked", key.revoked}});
    keys.push_back(std::move(entry));
  }
  for (const auto& ticket : roll.tickets) {
    auto entry = json_of(ticket.identity);
    entry.update({{"hash", ticket.hash}, {"expires", ticket.expires}});
    tickets.push_back(std::move(entry));
  }
  return Json{{"format", roll_format}, {"keys", keys}, {"tickets", tickets}}.dump(2) + "\n";
}

Expected<Roll> roll_from_json(std::string_view text) {
  const auto document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return Error{ErrorCode::bad_input, "a roll that is not a JSON object"};
  try {
    return read_roll(document);
  } catch (const Json::exception& error) {
    return Error{ErrorCode::bad_input, std::string("a roll that cannot be read: ") + error.what()};
  }
}

const char* standing(const EnrolledKey& key, std::int64_t now) {
  if (key.revoked != 0) return "revoked";
  if (key.ends != 0 && key.ends <= now) return "replaced";
  return key.expires <= now ? "expired" : "good";
}

Status admit(const Roll& roll, const Identity& identity, std::string_view key, std::int64_t now) {
  const auto* known = find_key(roll, key);
  if (known == nullptr || known->identity != identity)
    return Error{ErrorCode::bad_input, "the key of " + describe(identity) + " is not on the roll"};
  if (is_good(*known, now)) return base::ok();
  return Error{ErrorCode::bad_input, "the key of " + describe(identity) + " was " + standing(*known, now)};
}

Status add_ticket(Roll& roll, const Identity& identity, const std::string& hash, std::int64_t now) {
  std::erase_if(roll.tickets, [&](const auto& each) { return each.expires <= now || each.identity == identity; });
  if (roll.tickets.size() >= tickets_at_most) {
    return Error{ErrorCode::unavailable,
                 std::to_string(tickets_at_most) + " join tokens are out; each is void 15 minutes after it was made"};
  }
  roll.tickets.push_back({identity, hash, now + ticket_seconds});
  return base::ok();
}

Expected<Identity> redeem(Roll& roll, const std::string& hash, std::int64_t now) {
  const auto found =
      std::find_if(roll.tickets.begin(), roll.tickets.end(), [&](const auto& each) { return each.hash == hash; });
  if (found == roll.tickets.end() || found->expires <= now) {
    return Error{ErrorCode::bad_input,
                 "the join token is unknown here, used up or older than 15 minutes; a new one from `leafcutter keys "
                 "token` would do"};
  }
  auto identity = std::move(found->identity);
  roll.tickets.erase(found);
  return identity;
}

Status enrol(Roll& roll, const Identity& identity, const std::string& key, std::int64_t now, std::int64_t expires) {
  if (find_key(roll, key) != nullptr) return Error{ErrorCode::conflict, "the key is enrolled already"};
  for (auto& each : roll.keys)
    if (each.identity == identity && is_good(each, now)) each.revoked = now;
  roll.keys.push_back({identity, key, now, expires, 0, 0});
  return base::ok();
}

Status rotate(Roll& roll, const std::string& old_key, const std::string& new_key, std::int64_t now,
              std::int64_t expires, std::int64_t overlap) {
  if (find_key(roll, new_key) != nullptr) return Error{ErrorCode::conflict, "the key is enrolled already"};
  for (auto& each : roll.keys) {
    if (each.key != old_key) continue;
    if (!is_good(each, now)) break;
    // Twice rotated, the first end stays.
    const auto end = now + overlap;
    each.ends = each.ends == 0 ? end : std::min(each.ends, end);
    const auto identity = each.identity;
    roll.keys.push_back({identity, new_key, now, expires, 0, 0});
    return base::ok();
  }
  return Error{ErrorCode::bad_input, "the key that is to be replaced is not good any more; a join token would do"};
}

Expected<EnrolledKey> revoke(Roll& roll, std::string_view which, std::int64_t now) {
  std::vector<EnrolledKey*> meant;
  std::vector<std::string> names;
  for (auto& each : roll.keys) {
    if (!is_good(each, now)) continue;
    names.push_back(each.identity.name);
    const bool by_key = which.size() >= shortest_prefix && each.key.starts_with(which);
    if (by_key || each.identity.name == which) meant.push_back(&each);
  }
  if (meant.size() == 1) {
    meant.front()->revoked = now;
    return *meant.front();
  }
  std::string message = "`" + std::string(which) + "` names " +
                        (meant.empty() ? "no good key" : std::to_string(meant.size()) + " keys") + " of the roll";
  if (meant.empty()) {
    if (const auto near = base::nearest(which, names)) message += "; did you mean `" + *near + "`?";
  } else {
    message += ":";
    for (const auto* each : meant) message += " " + each->key.substr(0, 16);
    message += "; one of them would do";
  }
  return Error{ErrorCode::bad_input, message};
}

}  // namespace leafcutter::actors
