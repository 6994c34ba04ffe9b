#include "protocols/dns.hpp"

#include <map>
#include <utility>

#include "protocols/dns_rdata.hpp"

namespace leafcutter::protocols {
namespace {

/// Each pointer of a sensible name leads to another label, and no name has more.
constexpr int most_dns_pointers = 127;

/// A pointer has 14 bits.
constexpr std::size_t dns_pointer_reach = 0x4000;

std::uint8_t dns_byte(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

std::uint16_t dns_u16(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(dns_byte(bytes, at) << 8 | dns_byte(bytes, at + 1));
}

void put_dns_u16(std::string& out, std::size_t value) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}

base::Error dns_refused(std::size_t at, const std::string& what) {
  return {base::ErrorCode::protocol, "not a DNS message: " + what + ", at byte " + std::to_string(at), {}};
}

base::Error dns_impossible(const std::string& what) {
  return {base::ErrorCode::bad_input, "no DNS message can hold " + what, {}};
}

// --- Reading

/// The fields of RDATA, a step at a time: "18n*" is 18 bytes, a name, the rest.
struct RdataStep {
  char kind;  ///< 'b', 'n', 's' or '*'
  std::size_t bytes = 0;
};

std::optional<RdataStep> next_rdata_step(std::string_view& fields) {
  if (fields.empty()) return std::nullopt;
  std::size_t bytes = 0;
  bool digits = false;
  while (!fields.empty() && fields[0] >= '0' && fields[0] <= '9') {
    bytes = bytes * 10 + static_cast<std::size_t>(fields[0] - '0');
    fields.remove_prefix(1);
    digits = true;
  }
  if (digits) return RdataStep{'b', bytes};
  const RdataStep step{fields[0]};
  fields.remove_prefix(1);
  return step;
}

/// Walks a message. Nothing is read before the end of the bytes has been compared.
class DnsWalk {
 public:
  explicit DnsWalk(std::string_view bytes) : bytes_(bytes) {}

  /// The whole message; `fields` gets the place of each TTL.
  base::Expected<DnsMessage> message(std::vector<DnsTtlField>& fields);

 private:
  void header(DnsMessage& out) const;
  base::Expected<DnsQuestion> question();
  base::Expected<DnsRecord> record(std::vector<DnsTtlField>& fields);
  base::Expected<DnsName> name(std::size_t end);
  base::Expected<std::string> rdata(std::uint16_t type, std::size_t end);
  bool has(std::size_t count) const { return bytes_.size() - at_ >= count; }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

void DnsWalk::header(DnsMessage& out) const {
  const auto flags = dns_u16(bytes_, 2);
  out.id = dns_u16(bytes_, 0);
  out.response = (flags & 0x8000) != 0;
  out.opcode = static_cast<std::uint8_t>(flags >> 11 & 0xf);
  out.authoritative = (flags & 0x0400) != 0;
  out.truncated = (flags & 0x0200) != 0;
  out.recursion_desired = (flags & 0x0100) != 0;
  out.recursion_available = (flags & 0x0080) != 0;
  out.reserved = (flags & 0x0040) != 0;
  out.authentic_data = (flags & 0x0020) != 0;
  out.checking_disabled = (flags & 0x0010) != 0;
  out.rcode = static_cast<std::uint8_t>(flags & 0xf);
}

/// The name at `at_`, whose own bytes end before `end`; what it points to may lie anywhere before it. Each pointer must
/// lead to before everything that was read so far, so they come to an end.
base::Expected<DnsName> DnsWalk::name(std::size_t end) {
  const auto begin = at_;
  std::string wire;
  std::size_t pos = at_, limit = end, lowest = at_;
  int pointers = 0;
  for (;;) {
    if (pos >= limit) return dns_refused(begin, "a name runs past its end");
    const auto length = dns_byte(bytes_, pos);
    if ((length & 0xc0) == 0xc0) {
      if (limit - pos < 2) return dns_refused(begin, "a pointer in a name is cut in half");
      const std::size_t target = dns_u16(bytes_, pos) & 0x3fff;
      if (target < dns_header_bytes) return dns_refused(pos, "a name points into the header");
      if (target >= lowest) return dns_refused(pos, "a name's pointer does not lead backwards");
      if (pointers++ == 0) at_ = pos + 2;
      if (pointers > most_dns_pointers) return dns_refused(begin, "a name has more than 127 pointers");
      pos = lowest = target;
      limit = bytes_.size();
      continue;
    }
    if (length > dns_label_limit) return dns_refused(pos, "a label of an unknown kind");
    if (length == 0) break;
    if (limit - pos < 1u + length) return dns_refused(begin, "a label runs past its end");
    if (wire.size() + 1 + length + 1 > dns_name_limit) return dns_refused(begin, "a name is longer than 255 bytes");
    wire += bytes_.substr(pos, 1u + length);
    pos += 1u + length;
  }
  wire += '\0';
  if (pointers == 0) at_ = pos + 1;
  return DnsName::from_wire(wire);
}

/// RDATA from `at_` to `end` with its names made whole; moves `at_` to `end`.
base::Expected<std::string> DnsWalk::rdata(std::uint16_t type, std::size_t end) {
  auto fields = dns_rdata_layout(type).fields;
  std::string out;
  // A dynamic update (RFC 2136 §2.4) names types without giving data.
  if (fields.empty() || at_ == end) fields = "*";
  while (const auto step = next_rdata_step(fields)) {
    if (step->kind == 'n') {
      const auto found = name(end);
      if (!found) return found.error();
      out += found->wire();
      continue;
    }
    auto size = step->bytes;
    if (step->kind == '*') size = end - at_;
    if (step->kind == 's') size = at_ < end ? 1u + dns_byte(bytes_, at_) : 1u;
    if (end - at_ < size) return dns_refused(at_, "the data of a record of type " + dns_type_name(type) + " is short");
    out += bytes_.substr(at_, size);
    at_ += size;
  }
  if (at_ != end) return dns_refused(at_, "the data of a record of type " + dns_type_name(type) + " is too long");
  return out;
}

base::Expected<DnsQuestion> DnsWalk::question() {
  auto found = name(bytes_.size());
  if (!found) return found.error();
  if (!has(4)) return dns_refused(at_, "it ends within a question");
  DnsQuestion question{std::move(*found), dns_u16(bytes_, at_), dns_u16(bytes_, at_ + 2)};
  at_ += 4;
  return question;
}

base::Expected<DnsRecord> DnsWalk::record(std::vector<DnsTtlField>& fields) {
  auto found = name(bytes_.size());
  if (!found) return found.error();
  if (!has(10)) return dns_refused(at_, "it ends within a record");
  DnsRecord record;
  record.name = std::move(*found);
  record.type = dns_u16(bytes_, at_);
  record.class_number = dns_u16(bytes_, at_ + 2);
  record.ttl = static_cast<std::uint32_t>(dns_u16(bytes_, at_ + 4)) << 16 | dns_u16(bytes_, at_ + 6);
  const auto length = dns_u16(bytes_, at_ + 8);
  DnsTtlField field{at_ + 4, record.type};
  at_ += 10;
  if (!has(length)) return dns_refused(at_, "it ends within the data of a record");
  auto data = rdata(record.type, at_ + length);
  if (!data) return data.error();
  record.data = std::move(*data);
  if (record.type == dns_type::sig && record.data.size() >= 2) field.covered_type = dns_u16(record.data, 0);
  fields.push_back(field);
  return record;
}

base::Expected<DnsMessage> DnsWalk::message(std::vector<DnsTtlField>& fields) {
  if (!has(dns_header_bytes)) return dns_refused(bytes_.size(), "it is shorter than the header's 12 bytes");
  if (bytes_.size() > dns_message_limit) return dns_refused(dns_message_limit, "it is longer than 65535 bytes");
  DnsMessage out;
  header(out);
  at_ = dns_header_bytes;
  // The counts are the sender's claim: nothing is reserved for them, and each entry must come with its bytes.
  for (auto left = dns_u16(bytes_, 4); left > 0; --left) {
    auto found = question();
    if (!found) return found.error();
    out.questions.push_back(std::move(*found));
  }
  std::size_t count_at = 6;
  for (auto* section : {&out.answers, &out.authorities, &out.additional}) {
    for (auto left = dns_u16(bytes_, count_at); left > 0; --left) {
      auto found = record(fields);
      if (!found) return found.error();
      section->push_back(std::move(*found));
    }
    count_at += 2;
  }
  out.trailing = bytes_.substr(at_);
  return out;
}

// --- Writing

class DnsBuilder {
 public:
  explicit DnsBuilder(const DnsMessage& message) : message_(message) {}
  base::Expected<std::string> build();

 private:
  base::Status header();
  void name(const std::string& wire, bool compress);
  base::Status record(const DnsRecord& record);
  base::Status rdata(const DnsRecord& record);

  const DnsMessage& message_;
  std::string out_;
  std::map<std::string, std::size_t, std::less<>> written_;  ///< the wire form of a suffix -> where it begins
};

base::Status DnsBuilder::header() {
  if (message_.opcode > 15) return dns_impossible("opcode " + std::to_string(message_.opcode) + "; it has 4 bits");
  if (message_.rcode > 15) return dns_impossible("rcode " + std::to_string(message_.rcode) + " without EDNS");
  unsigned flags = static_cast<unsigned>(message_.opcode) << 11 | message_.rcode;
  const std::pair<bool, unsigned> bits[] = {
      {message_.response, 0x8000},          {message_.authoritative, 0x0400},       {message_.truncated, 0x0200},
      {message_.recursion_desired, 0x0100}, {message_.recursion_available, 0x0080}, {message_.reserved, 0x0040},
      {message_.authentic_data, 0x0020},    {message_.checking_disabled, 0x0010}};
  for (const auto& [set, bit] : bits)
    if (set) flags |= bit;
  put_dns_u16(out_, message_.id);
  put_dns_u16(out_, flags);
  for (const auto count :
       {message_.questions.size(), message_.answers.size(), message_.authorities.size(), message_.additional.size()}) {
    if (count > 0xffff) return dns_impossible(std::to_string(count) + " records in a section");
    put_dns_u16(out_, count);
  }
  return base::ok();
}

void DnsBuilder::name(const std::string& wire, bool compress) {
  std::string_view rest = wire;
  while (rest.size() > 1) {
    if (const auto known = written_.find(rest); known != written_.end()) {
      if (!compress) break;
      put_dns_u16(out_, 0xc000 | known->second);
      return;
    }
    if (out_.size() < dns_pointer_reach) written_.emplace(rest, out_.size());
    const auto label = 1 + static_cast<std::size_t>(rest[0]);
    out_ += rest.substr(0, label);
    rest.remove_prefix(label);
  }
  out_ += rest;
}

base::Status DnsBuilder::rdata(const DnsRecord& record) {
  auto [fields, compress] = dns_rdata_layout(record.type);
  if (fields.empty() || record.data.empty()) {
    out_ += record.data;
    return base::ok();
  }
  const auto broken = [&] {
    return dns_impossible("a record of type " + dns_type_name(record.type) + " of " +
                          std::to_string(record.data.size()) + " bytes that are not of its form");
  };
  std::string_view rest = record.data;
  while (const auto step = next_rdata_step(fields)) {
    auto size = step->bytes;
    if (step->kind == '*') size = rest.size();
    if (step->kind == 's') size = rest.empty() ? 1u : 1u + dns_byte(rest, 0);
    if (step->kind == 'n') {
      size = 0;
      while (size < rest.size() && rest[size] != '\0') size += 1u + dns_byte(rest, size);
      ++size;
    }
    if (size > rest.size()) return broken();
    const auto field = rest.substr(0, size);
    if (step->kind == 'n') {
      const auto whole = DnsName::from_wire(field);
      if (!whole) return broken();
      name(whole->wire(), compress);
    } else {
      out_ += field;
    }
    rest.remove_prefix(size);
  }
  return rest.empty() ? base::ok() : base::Status(broken());
}

base::Status DnsBuilder::record(const DnsRecord& record) {
  name(record.name.wire(), true);
  put_dns_u16(out_, record.type);
  put_dns_u16(out_, record.class_number);
  put_dns_u16(out_, record.ttl >> 16);
  put_dns_u16(out_, record.ttl & 0xffff);
  const auto length_at = out_.size();
  put_dns_u16(out_, 0);
  if (auto written = rdata(record); !written) return written.error();
  const auto length = out_.size() - length_at - 2;
  if (length > 0xffff) return dns_impossible("a record with " + std::to_string(length) + " bytes of data");
  out_[length_at] = static_cast<char>(length >> 8);
  out_[length_at + 1] = static_cast<char>(length & 0xff);
  return base::ok();
}

base::Expected<std::string> DnsBuilder::build() {
  if (auto written = header(); !written) return written.error();
  for (const auto& question : message_.questions) {
    name(question.name.wire(), true);
    put_dns_u16(out_, question.type);
    put_dns_u16(out_, question.class_number);
  }
  for (const auto* section : {&message_.answers, &message_.authorities, &message_.additional}) {
    for (const auto& entry : *section) {
      if (auto written = record(entry); !written) return written.error();
    }
  }
  out_ += message_.trailing;
  if (out_.size() > dns_message_limit)
    return dns_impossible(std::to_string(out_.size()) + " bytes; at most 65535 are possible");
  return std::move(out_);
}

}  // namespace

base::Expected<DnsMessage> parse_dns(std::string_view bytes) {
  std::vector<DnsTtlField> fields;
  return DnsWalk(bytes).message(fields);
}

base::Expected<std::vector<DnsTtlField>> dns_ttl_fields(std::string_view bytes) {
  std::vector<DnsTtlField> fields;
  const auto message = DnsWalk(bytes).message(fields);
  if (!message) return message.error();
  return fields;
}

base::Expected<std::string> encode_dns(const DnsMessage& message) { return DnsBuilder(message).build(); }

base::Expected<std::optional<DnsEdns>> edns_of(const DnsMessage& message) {
  const auto broken = [](const char* what) {
    return base::Error{base::ErrorCode::protocol, std::string("EDNS: ") + what, {}};
  };
  const DnsRecord* record = nullptr;
  for (const auto& candidate : message.additional) {
    if (candidate.type != dns_type::opt) continue;
    if (record != nullptr) return broken("more than one OPT record");
    record = &candidate;
  }
  if (record == nullptr) return std::optional<DnsEdns>();
  if (!record->name.is_root()) return broken("the OPT record belongs to a name; it must belong to the root");
  DnsEdns edns;
  edns.udp_payload = record->class_number;
  edns.extended_rcode = static_cast<std::uint8_t>(record->ttl >> 24);
  edns.version = static_cast<std::uint8_t>(record->ttl >> 16 & 0xff);
  edns.dnssec_ok = (record->ttl & 0x8000) != 0;
  edns.flags = static_cast<std::uint16_t>(record->ttl & 0x7fff);
  for (std::string_view rest = record->data; !rest.empty();) {
    if (rest.size() < 4 || rest.size() - 4 < dns_u16(rest, 2)) return broken("an option is cut short");
    const std::size_t length = dns_u16(rest, 2);
    edns.options.push_back({dns_u16(rest, 0), std::string(rest.substr(4, length))});
    rest.remove_prefix(4 + length);
  }
  return std::optional<DnsEdns>(std::move(edns));
}

base::Expected<DnsRecord> to_record(const DnsEdns& edns) {
  DnsRecord record;
  record.type = dns_type::opt;
  record.class_number = edns.udp_payload;
  record.ttl = static_cast<std::uint32_t>(edns.extended_rcode) << 24 | static_cast<std::uint32_t>(edns.version) << 16 |
               (edns.dnssec_ok ? 0x8000u : 0u) | (edns.flags & 0x7fffu);
  for (const auto& option : edns.options) {
    if (option.data.size() > 0xffff) return dns_impossible("an EDNS option of that size");
    put_dns_u16(record.data, option.code);
    put_dns_u16(record.data, option.data.size());
    record.data += option.data;
  }
  if (record.data.size() > 0xffff) return dns_impossible("EDNS options of that size");
  return record;
}

}  // namespace leafcutter::protocols
