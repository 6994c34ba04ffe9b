#include "protocols/dns_rdata.hpp"

#include "protocols/dns_type.hpp"

namespace leafcutter::protocols {

DnsRdataLayout dns_rdata_layout(std::uint16_t type) {
  switch (type) {
    case dns_type::ns:
    case dns_type::md:
    case dns_type::mf:
    case dns_type::cname:
    case dns_type::mb:
    case dns_type::mg:
    case dns_type::mr:
    case dns_type::ptr: return {"n", true};
    case dns_type::soa: return {"nn20", true};
    case dns_type::minfo: return {"nn", true};
    case dns_type::mx: return {"2n", true};
    case dns_type::rp: return {"nn", false};
    case dns_type::afsdb:
    case dns_type::rt: return {"2n", false};
    case dns_type::sig: return {"18n*", false};
    case dns_type::px: return {"2nn", false};
    case dns_type::nxt: return {"n*", false};
    case dns_type::srv: return {"6n", false};
    case dns_type::naptr: return {"4sssn", false};
    default: return {};
  }
}

}  // namespace leafcutter::protocols
