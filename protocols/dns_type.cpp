#include "protocols/dns_type.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/text.hpp"

namespace leafcutter::protocols {
namespace {

struct NamedDnsType {
  std::uint16_t number;
  const char* name;
};

constexpr NamedDnsType named_dns_types[] = {
    {1, "A"},       {2, "NS"},     {3, "MD"},       {4, "MF"},          {5, "CNAME"},   {6, "SOA"},
    {7, "MB"},      {8, "MG"},     {9, "MR"},       {10, "NULL"},       {11, "WKS"},    {12, "PTR"},
    {13, "HINFO"},  {14, "MINFO"}, {15, "MX"},      {16, "TXT"},        {17, "RP"},     {18, "AFSDB"},
    {19, "X25"},    {20, "ISDN"},  {21, "RT"},      {22, "NSAP"},       {24, "SIG"},    {25, "KEY"},
    {26, "PX"},     {27, "GPOS"},  {28, "AAAA"},    {29, "LOC"},        {30, "NXT"},    {33, "SRV"},
    {35, "NAPTR"},  {36, "KX"},    {37, "CERT"},    {38, "A6"},         {39, "DNAME"},  {41, "OPT"},
    {42, "APL"},    {43, "DS"},    {44, "SSHFP"},   {45, "IPSECKEY"},   {46, "RRSIG"},  {47, "NSEC"},
    {48, "DNSKEY"}, {49, "DHCID"}, {50, "NSEC3"},   {51, "NSEC3PARAM"}, {52, "TLSA"},   {53, "SMIMEA"},
    {55, "HIP"},    {59, "CDS"},   {60, "CDNSKEY"}, {61, "OPENPGPKEY"}, {62, "CSYNC"},  {63, "ZONEMD"},
    {64, "SVCB"},   {65, "HTTPS"}, {99, "SPF"},     {108, "EUI48"},     {109, "EUI64"}, {249, "TKEY"},
    {250, "TSIG"},  {251, "IXFR"}, {252, "AXFR"},   {255, "ANY"},       {256, "URI"},   {257, "CAA"},
};

constexpr std::array<const char*, 12> named_dns_rcodes = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN",
                                                          "NOTIMP",  "REFUSED", "YXDOMAIN", "YXRRSET",
                                                          "NXRRSET", "NOTAUTH", "NOTZONE",  "DSOTYPENI"};

/// The number in "TYPE65280", when `upper` has that form.
std::optional<std::uint16_t> numbered_dns_type(std::string_view upper) {
  if (upper.substr(0, 4) != "TYPE" || upper.size() < 5) return std::nullopt;
  std::uint16_t number = 0;
  const char* end = upper.data() + upper.size();
  const auto [stop, failed] = std::from_chars(upper.data() + 4, end, number);
  if (failed != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::string dns_type_name(std::uint16_t type) {
  for (const auto& known : named_dns_types)
    if (known.number == type) return known.name;
  return "TYPE" + std::to_string(type);
}

base::Expected<std::uint16_t> dns_type_number(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  for (const auto& known : named_dns_types)
    if (upper == known.name) return known.number;
  if (const auto number = numbered_dns_type(upper)) return *number;
  std::string message = "`" + std::string(name) + "` is not a type of DNS records";
  const bool digits =
      !upper.empty() && std::all_of(upper.begin(), upper.end(), [](char c) { return c >= '0' && c <= '9'; });
  std::vector<std::string> names;
  for (const auto& known : named_dns_types) names.emplace_back(known.name);
  const auto near = base::nearest(upper, names);
  if (digits && numbered_dns_type("TYPE" + upper)) {
    message += "; a type by its number is written `TYPE" + upper + "`";
  } else if (near && !upper.empty()) {
    message += "; did you mean `" + *near + "`?";
  } else {
    message += "; write a name such as A, AAAA, CNAME, MX, SRV or TXT, or TYPE0 to TYPE65535";
  }
  return base::Error{base::ErrorCode::bad_input, message, {}};
}

std::string dns_rcode_name(std::uint16_t rcode) {
  if (rcode < named_dns_rcodes.size()) return named_dns_rcodes[rcode];
  return rcode == 16 ? "BADVERS" : rcode == 23 ? "BADCOOKIE" : "RCODE" + std::to_string(rcode);
}

}  // namespace leafcutter::protocols
