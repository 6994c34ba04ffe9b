#include "actors/trust/identity.hpp"

#include <algorithm>
#include <array>

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;

constexpr std::string_view uri_scheme = "leafcutter:";
constexpr std::size_t name_bytes = 64;
constexpr std::array<Role, 3> all_roles = {Role::coordinator, Role::node, Role::client};

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

}  // namespace

const char* role_name(Role role) {
  switch (role) {
    case Role::coordinator: return "coordinator";
    case Role::node: return "node";
    case Role::client: return "client";
  }
  return "nobody";
}

base::Expected<Role> role_from(std::string_view name) {
  for (const auto role : all_roles)
    if (name == role_name(role)) return role;
  return Error{ErrorCode::protocol,
               "`" + std::string(name.substr(0, name_bytes)) + "` is not a role; coordinator, node and client are"};
}

std::string describe(const Identity& identity) { return std::string(role_name(identity.role)) + " " + identity.name; }

base::Status check_peer_name(std::string_view name) {
  const bool well = !name.empty() && name.size() <= name_bytes && is_letter_or_digit(name.front()) &&
                    std::all_of(name.begin(), name.end(),
                                [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
  if (well) return base::ok();
  return Error{ErrorCode::bad_input,
               "`" + std::string(name.substr(0, name_bytes)) +
                   "` is not a name: one has 1 to 64 letters, digits, `.`, `-` and `_`, and begins with a letter or "
                   "digit; berlin-1 would do"};
}

std::string identity_uri(const Identity& identity) {
  return std::string(uri_scheme) + role_name(identity.role) + "/" + identity.name;
}

base::Expected<Identity> identity_from_uri(std::string_view uri) {
  const auto refuse = [](const std::string& why) { return Error{ErrorCode::protocol, why}; };
  if (!uri.starts_with(uri_scheme)) return refuse("not a name that Leafcutter gives");
  uri.remove_prefix(uri_scheme.size());
  const auto cut = uri.find('/');
  if (cut == std::string_view::npos) return refuse("a role without a name");
  const auto role = role_from(uri.substr(0, cut));
  if (!role) return role.error();
  if (const auto named = check_peer_name(uri.substr(cut + 1)); !named) return refuse(named.error().message);
  return Identity{*role, std::string(uri.substr(cut + 1))};
}

}  // namespace leafcutter::actors
