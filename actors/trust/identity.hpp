// Who a peer is, as its certificate says it and nothing else does: a role and a name, in one URI of the certificate
// (subject alternative name, RFC 5280 4.2.1.6): "leafcutter:node/berlin-1".
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::actors {

enum class Role { coordinator, node, client };

struct Identity {
  Role role = Role::client;
  std::string name;
  bool operator==(const Identity&) const = default;
};

const char* role_name(Role role);  ///< "coordinator", "node", "client"
base::Expected<Role> role_from(std::string_view name);

/// "node berlin-1", for people.
std::string describe(const Identity& identity);

/// A name has 1 to 64 letters, digits, '.', '-' and '_', and begins with a letter or digit. Errors: bad_input.
base::Status check_peer_name(std::string_view name);

std::string identity_uri(const Identity& identity);
/// Errors: protocol.
base::Expected<Identity> identity_from_uri(std::string_view uri);

}  // namespace leafcutter::actors
