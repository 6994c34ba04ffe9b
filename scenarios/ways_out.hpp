// Where what may leave a leaf goes, as the leaf and the host have it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "scenarios/model.hpp"

namespace leafcutter::scenarios {

/// The usual form of an IPv4 or IPv6 address; none: it is no address. IPv4 in IPv6 is IPv4.
std::optional<std::string> canonical_address(const std::string& text);

/// Why nothing can be allowed to go to this address: it is the leaf's own, or nobody's. Empty: it can.
std::string why_no_destination(const std::string& address);

inline constexpr std::size_t most_names_outside = 254;

/// Inside a leaf every name of a host outside of it has an address of its own, "10.77.1.1" and so on, whatever it has
/// outside.
std::map<std::string, std::string> outside_addresses(const Scenario& scenario);

/// "shop -> api.example.org:443 (at 127.0.0.1:8443)", for people.
std::string way_out_text(const WayOut& way);

/// One sentence for reports: what the leaves of the scenario depend on outside of themselves. Empty: nothing.
std::string outside_text(const Scenario& scenario);

}  // namespace leafcutter::scenarios
