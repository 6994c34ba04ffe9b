// Which types of records hold names in their RDATA, and where. Such names may be pointers into the message they came
// in, so they must be made whole before a record can stand by itself.
#pragma once

#include <cstdint>
#include <string_view>

namespace leafcutter::protocols {

/// RDATA from its beginning, a character a field: digits, so many bytes ("2n": two bytes and a name); n, a name; s, a
/// character-string; *, anything up to the end. Empty for a type without names, or unknown: its RDATA is bytes.
///
/// These are the types that RFC 3597 §4 tells a receiver to expect pointers in. `compress`: those of RFC 1035, in which
/// alone a sender may use them.
struct DnsRdataLayout {
  std::string_view fields;
  bool compress = false;
};

DnsRdataLayout dns_rdata_layout(std::uint16_t type);

}  // namespace leafcutter::protocols
