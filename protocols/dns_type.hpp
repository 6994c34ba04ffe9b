// Types, classes and response codes of DNS by number and by name (IANA's registry "DNS Parameters").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::protocols {

namespace dns_type {
inline constexpr std::uint16_t a = 1, ns = 2, md = 3, mf = 4, cname = 5, soa = 6, mb = 7, mg = 8, mr = 9, ptr = 12,
                               minfo = 14, mx = 15, txt = 16, rp = 17, afsdb = 18, rt = 21, sig = 24, px = 26,
                               aaaa = 28, nxt = 30, srv = 33, naptr = 35, opt = 41, tsig = 250, any = 255;
}  // namespace dns_type

namespace dns_class {
inline constexpr std::uint16_t in = 1, any = 255;
}  // namespace dns_class

namespace dns_rcode {
inline constexpr std::uint8_t no_error = 0, format_error = 1, server_failure = 2, name_error = 3, not_implemented = 4,
                              refused = 5;
}  // namespace dns_rcode

/// "AAAA"; "TYPE65280" (RFC 3597 §5) for a number without a name.
std::string dns_type_name(std::uint16_t type);

/// The number of "AAAA", "aaaa" or "TYPE28". Errors: bad_input, with the nearest name.
base::Expected<std::uint16_t> dns_type_number(std::string_view name);

/// "NXDOMAIN"; "RCODE11" for a number without a name.
std::string dns_rcode_name(std::uint16_t rcode);

}  // namespace leafcutter::protocols
