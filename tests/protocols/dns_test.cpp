#include "protocols/dns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/random.hpp"
#include "protocols/dns_rdata.hpp"
#include "tests/protocols/dns_packets.hpp"

using namespace leafcutter::protocols;
using dns_packets::from_hex;
using dns_packets::name;
using dns_packets::packet;
using dns_packets::parsed;
using leafcutter::base::Stream;
using testing::HasSubstr;

namespace {

std::string encoded(const DnsMessage& message) {
  auto bytes = encode_dns(message);
  if (!bytes) throw std::runtime_error(bytes.error().message);
  return *bytes;
}

/// Bytes with a page behind them that cannot be read: who looks past their end dies.
class Walled {
 public:
  explicit Walled(std::string_view bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    room_ = (bytes.size() / page_ + 1) * page_;
    base_ =
        static_cast<char*>(mmap(nullptr, room_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + room_, page_, PROT_NONE) != 0) throw std::runtime_error("no memory");
    view_ = {base_ + room_ - bytes.size(), bytes.size()};
    std::memcpy(base_ + room_ - bytes.size(), bytes.data(), bytes.size());
  }
  Walled(const Walled&) = delete;
  Walled& operator=(const Walled&) = delete;
  ~Walled() { munmap(base_, room_ + page_); }
  std::string_view view() const { return view_; }

 private:
  std::size_t page_, room_ = 0;
  char* base_ = nullptr;
  std::string_view view_;
};

/// A header with these counts, and what follows it.
std::string message_of(std::array<int, 4> counts, const std::string& rest_hex) {
  std::string bytes = from_hex("1234 8180");
  for (const int count : counts) {
    bytes += static_cast<char>(count >> 8);
    bytes += static_cast<char>(count & 0xff);
  }
  return bytes + from_hex(rest_hex);
}

// --- Random messages

std::string random_bytes(Stream& random, std::uint64_t below) {
  std::string bytes;
  for (auto left = random.below(below); left > 0; --left) bytes += static_cast<char>(random.next());
  return bytes;
}

/// Few labels, so that names share suffixes in every case; now and then any bytes, or as long as a name can be.
DnsName random_name(Stream& random) {
  static const char* const labels[] = {"shop", "SHOP", "Shop", "example", "EXAMPLE", "a", "*", "_tcp"};
  std::string wire;
  const auto longest = random.below(16) == 0 ? dns_name_limit : 64u;
  while (random.below(4) != 0) {
    std::string label = labels[random.below(std::size(labels))];
    if (random.below(8) == 0) label = random_bytes(random, dns_label_limit) + "x";
    if (wire.size() + label.size() + 2 > longest) break;
    wire += static_cast<char>(label.size());
    wire += label;
  }
  return *DnsName::from_wire(wire + '\0');
}

std::string random_data(Stream& random, std::uint16_t type) {
  const std::string fields(dns_rdata_layout(type).fields);
  if (fields.empty()) return random_bytes(random, 40);
  if (random.below(8) == 0) return {};
  std::string data;
  for (std::size_t at = 0; at < fields.size(); ++at) {
    std::size_t digits = 0;
    if (fields[at] >= '0' && fields[at] <= '9') {
      const auto count = std::stoul(fields.substr(at), &digits);
      for (std::size_t i = 0; i < count; ++i) data += static_cast<char>(random.next());
      at += digits - 1;
    } else if (fields[at] == 'n') {
      data += random_name(random).wire();
    } else if (fields[at] == 's') {
      const auto text = random_bytes(random, 20);
      data += static_cast<char>(text.size());
      data += text;
    } else {
      data += random_bytes(random, 20);
    }
  }
  return data;
}

DnsMessage random_message(Stream& random) {
  static const std::uint16_t types[] = {1,  2,  5,  6,  12, 14, 15, 16, 17, 18,  24,
                                        26, 28, 30, 33, 35, 41, 43, 46, 65, 250, 65280};
  const auto coin = [&] { return random.below(2) == 0; };
  DnsMessage message;
  message.id = static_cast<std::uint16_t>(random.next());
  message.response = coin();
  message.opcode = static_cast<std::uint8_t>(random.below(16));
  message.authoritative = coin();
  message.truncated = coin();
  message.recursion_desired = coin();
  message.recursion_available = coin();
  message.reserved = coin();
  message.authentic_data = coin();
  message.checking_disabled = coin();
  message.rcode = static_cast<std::uint8_t>(random.below(16));
  const auto number = [&] { return static_cast<std::uint16_t>(random.next()); };
  for (auto left = random.below(3); left > 0; --left)
    message.questions.push_back({random_name(random), number(), number()});
  for (auto* section : {&message.answers, &message.authorities, &message.additional}) {
    for (auto left = random.below(5); left > 0; --left) {
      DnsRecord record{random_name(random),
                       types[random.below(std::size(types))],
                       number(),
                       static_cast<std::uint32_t>(random.next()),
                       {}};
      record.data = random_data(random, record.type);
      section->push_back(std::move(record));
    }
  }
  message.trailing = random.below(8) == 0 ? random_bytes(random, 10) : "";
  return message;
}

}  // namespace

// --- Real packets

TEST(Dns, ReadsAQueryThatDigSent) {
  const auto query = parsed(packet("query_a_case"));
  EXPECT_EQ(query.id, 0x10ca);
  EXPECT_FALSE(query.response);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_TRUE(query.authentic_data);
  ASSERT_EQ(query.questions.size(), 1u);
  EXPECT_EQ(query.questions[0].name.text(), "ShOp.eXaMPLE");
  EXPECT_EQ(query.questions[0].type, dns_type::a);
  EXPECT_EQ(query.questions[0].class_number, dns_class::in);
  EXPECT_TRUE(query.additional.empty());
}

TEST(Dns, ReadsWhatDnsmasqAnswered) {
  struct Row {
    const char* file;
    std::uint8_t rcode;
    std::array<std::size_t, 3> records;
    bool truncated;
    bool edns;
  };
  const Row rows[] = {
      {"answer_a", 0, {1, 0, 0}, false, false},        {"answer_a_case", 0, {1, 0, 0}, false, false},
      {"answer_aaaa_edns", 0, {1, 0, 1}, false, true}, {"answer_cname", 0, {2, 0, 0}, false, false},
      {"answer_mx", 0, {1, 0, 1}, false, false},       {"answer_srv", 0, {1, 0, 2}, false, false},
      {"answer_soa", 0, {1, 1, 0}, false, false},      {"answer_type65280", 0, {1, 0, 0}, false, false},
      {"answer_any", 0, {6, 0, 1}, false, false},      {"answer_truncated", 0, {2, 0, 0}, true, false},
      {"answer_nxdomain", 3, {0, 0, 0}, false, false}, {"answer_nxdomain_soa", 3, {0, 1, 1}, false, true},
      {"answer_refused", 5, {0, 0, 1}, false, true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.file);
    const auto message = parsed(packet(row.file));
    EXPECT_TRUE(message.response);
    EXPECT_EQ(message.rcode, row.rcode);
    EXPECT_EQ(message.truncated, row.truncated);
    EXPECT_EQ(message.answers.size(), row.records[0]);
    EXPECT_EQ(message.authorities.size(), row.records[1]);
    EXPECT_EQ(message.additional.size(), row.records[2]);
    EXPECT_EQ(edns_of(message)->has_value(), row.edns);
    EXPECT_EQ(parsed(encoded(message)), message);
  }
}

TEST(Dns, MakesPointersInDataWhole) {
  const auto mx = parsed(packet("answer_mx"));
  EXPECT_EQ(mx.answers[0].data, std::string("\0\x0a", 2) + name("mail.example").wire());
  EXPECT_EQ(mx.additional[0].name.text(), "mail.example") << "points into the data of the record before";
  const auto cname = parsed(packet("answer_cname"));
  EXPECT_EQ(cname.answers[0].data, name("shop.example").wire());
  const auto soa = parsed(packet("answer_nxdomain_soa"));
  EXPECT_EQ(soa.authorities[0].data.substr(0, 41),
            name("ns.shop.example").wire() + name("hostmaster.shop.example").wire().substr(0, 24));
}

/// A question for `shop` at byte 12, and data in which every name is a pointer to it; `whole` has the name instead.
TEST(Dns, MakesPointersWholeInEveryTypeThatMayHaveThem) {
  const std::string shop = "0473686f7000", twenty = "0102030405060708090a0b0c0d0e0f1011121314";
  const auto fixed = [&](std::size_t bytes) { return twenty.substr(0, 2 * bytes); };
  const auto text = std::string("03") + "c00c61";  // bytes of a character-string that look like a pointer
  struct Row {
    std::uint16_t type;
    std::vector<std::string> parts;  ///< "" stands for the name
  };
  const Row rows[] = {{2, {""}},
                      {3, {""}},
                      {4, {""}},
                      {5, {""}},
                      {6, {"", "", twenty}},
                      {7, {""}},
                      {8, {""}},
                      {9, {""}},
                      {12, {""}},
                      {14, {"", ""}},
                      {15, {fixed(2), ""}},
                      {17, {"", ""}},
                      {18, {fixed(2), ""}},
                      {21, {fixed(2), ""}},
                      {24, {fixed(18), "", "c00c"}},
                      {26, {fixed(2), "", ""}},
                      {30, {"", "c00c"}},
                      {33, {fixed(6), ""}},
                      {35, {fixed(4), text, text, "00", ""}}};
  for (const auto& row : rows) {
    std::string pointed, whole;
    for (const auto& part : row.parts) {
      pointed += part.empty() ? "c00c" : part;
      whole += part.empty() ? shop : part;
    }
    auto bytes =
        message_of({1, 1, 0, 0}, shop + "00010001 c00c") + from_hex("0000 0001 00000000 00") + '\0' + from_hex(pointed);
    bytes[12 + 6 + 4 + 2 + 1] = static_cast<char>(row.type);
    bytes[12 + 6 + 4 + 2 + 9] = static_cast<char>(pointed.size() / 2);
    const auto message = parsed(bytes);
    EXPECT_EQ(message.answers[0].data, from_hex(whole)) << dns_type_name(row.type);
    EXPECT_EQ(parsed(encoded(message)), message) << dns_type_name(row.type);
  }
}

/// TYPE65280's data in the packet ends in c0 0c, which looks like a pointer and is none.
TEST(Dns, KeepsTheDataOfUnknownTypesByteForByte) {
  const auto message = parsed(packet("answer_type65280"));
  EXPECT_EQ(message.answers[0].type, 65280);
  EXPECT_EQ(message.answers[0].data, from_hex("deadbeef00c00c"));
  EXPECT_EQ(parsed(encoded(message)).answers[0].data, from_hex("deadbeef00c00c"));
}

TEST(Dns, KeepsEdnsOptionsByteForByte) {
  const auto message = parsed(packet("query_a_options"));
  const auto edns = edns_of(message);
  ASSERT_TRUE(edns.ok() && edns->has_value());
  EXPECT_EQ((*edns)->udp_payload, 1232);
  EXPECT_FALSE((*edns)->dnssec_ok);
  ASSERT_EQ((*edns)->options.size(), 2u);
  EXPECT_EQ((*edns)->options[0], (DnsEdnsOption{8, from_hex("00011800c00002")}));
  EXPECT_EQ((*edns)->options[1], (DnsEdnsOption{65001, from_hex("0a0b0c")}));
  EXPECT_EQ(*to_record(**edns), message.additional[0]);
  EXPECT_TRUE((*edns_of(parsed(packet("query_a_cookie"))))->dnssec_ok);
}

/// What dnsmasq compressed, we compress as far: our bytes are not longer than the ones that came.
TEST(Dns, CompressesAsWellAsItsPeers) {
  for (const auto& bytes : dns_packets::all()) EXPECT_LE(encoded(parsed(bytes)).size(), bytes.size());
  EXPECT_EQ(encoded(parsed(packet("answer_a_case"))), packet("answer_a_case"));
}

TEST(Dns, CompressionKeepsTheCaseOfEveryName) {
  DnsMessage message;
  message.questions.push_back({name("shop.EXAMPLE")});
  message.answers.push_back({name("shop.example"), dns_type::cname, dns_class::in, 1, name("SHOP.EXAMPLE").wire()});
  EXPECT_EQ(parsed(encoded(message)), message);
}

/// Receivers need not expand pointers in newer types (RFC 3597 §4), so none are written there.
TEST(Dns, NoPointersAreWrittenInTheDataOfNewerTypes) {
  DnsMessage message;
  message.questions.push_back({name("shop.example"), dns_type::srv});
  message.answers.push_back(
      {name("shop.example"), dns_type::srv, dns_class::in, 1, std::string(6, 'x') + name("shop.example").wire()});
  EXPECT_THAT(encoded(message), HasSubstr("xxxxxx" + name("shop.example").wire()));
  message.answers[0] = {name("shop.example"), dns_type::mx, dns_class::in, 1, "xx" + name("shop.example").wire()};
  EXPECT_THAT(encoded(message), HasSubstr("xx\xc0\x0c"));
}

TEST(Dns, AnUpdateMayNameATypeWithoutData) {
  // RFC 2136 §2.4.1: class ANY, RDLENGTH 0 asks whether any MX record of the name exists.
  const auto message = parsed(message_of({0, 1, 0, 0}, "0473686f7000 000f 00ff 00000000 0000"));
  EXPECT_EQ(message.answers[0].data, "");
  EXPECT_EQ(parsed(encoded(message)), message);
}

// --- Malformed

TEST(Dns, RefusesWhatIsMalformed) {
  struct Row {
    const char* what;
    std::array<int, 4> counts;
    std::string rest;
    const char* says;
  };
  const std::string question_end = "0001 0001";
  const Row rows[] = {
      {"a question that is not there", {1, 0, 0, 0}, "", "runs past its end"},
      {"a pointer to itself", {1, 0, 0, 0}, "c00c" + question_end, "backwards"},
      {"a pointer forwards", {1, 0, 0, 0}, "c00e 0473686f7000" + question_end, "backwards"},
      {"a pointer past the end", {1, 0, 0, 0}, "ffff" + question_end, "backwards"},
      {"a pointer into the header", {1, 0, 0, 0}, "c000" + question_end, "header"},
      {"a loop through a label", {1, 0, 0, 0}, "0161 c00c" + question_end, "backwards"},
      {"a loop of two pointers", {2, 0, 0, 0}, "0161 00" + question_end + "0162 c017 c013" + question_end, "backwards"},
      {"half a pointer", {1, 0, 0, 0}, "c0", "cut in half"},
      {"a label kind of 01", {1, 0, 0, 0}, "4161 00" + question_end, "unknown kind"},
      {"a label kind of 10", {1, 0, 0, 0}, "8161 00" + question_end, "unknown kind"},
      {"a label past the end", {1, 0, 0, 0}, "0573686f70", "runs past its end"},
      {"a question without class", {1, 0, 0, 0}, "0161 00 0001", "within a question"},
      {"a record without data length", {0, 1, 0, 0}, "00 0001 0001 00000000", "within a record"},
      {"data past the end", {0, 1, 0, 0}, "00 0001 0001 00000000 0004 c00002", "data of a record"},
      {"an MX record without its name", {0, 1, 0, 0}, "00 000f 0001 00000000 0002 000a", "runs past its end"},
      {"an MX record with half a preference", {0, 1, 0, 0}, "00 000f 0001 00000000 0001 0a", "MX is short"},
      {"an MX record with more behind", {0, 1, 0, 0}, "00 000f 0001 00000000 0004 000a 00 ff", "MX is too long"},
      {"a name that leaves its data", {0, 1, 0, 0}, "00 0002 0001 00000000 0002 0461 616161 00", "runs past its end"},
      {"an SOA record without timers", {0, 1, 0, 0}, "00 0006 0001 00000000 0002 0000", "SOA is short"},
      {"a NAPTR record's text past its end",
       {0, 1, 0, 0},
       "00 0023 0001 00000000 0006 00000000 05 61",
       "NAPTR is short"},
      {"more records than bytes", {0, 65535, 0, 0}, "", "runs past its end"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const Walled bytes(message_of(row.counts, row.rest));
    const auto message = parse_dns(bytes.view());
    ASSERT_FALSE(message.ok());
    EXPECT_EQ(message.error().code, leafcutter::base::ErrorCode::protocol);
    EXPECT_THAT(message.error().message, HasSubstr(row.says));
    EXPECT_THAT(message.error().message, HasSubstr("at byte "));
  }
}

TEST(Dns, TheLongestNameIsReadAndOneByteMoreIsNot) {
  // Three labels of 63, one of `last`, the root: 3 * 64 + 1 + last + 1 bytes.
  const auto with = [](std::size_t last) {
    std::string wire = message_of({1, 0, 0, 0}, "");
    for (const std::size_t size : {std::size_t{63}, std::size_t{63}, std::size_t{63}, last}) {
      wire += static_cast<char>(size);
      wire += std::string(size, 'x');
    }
    return wire + from_hex("00 0001 0001");
  };
  EXPECT_EQ(parsed(with(61)).questions[0].name.wire().size(), 255u);
  EXPECT_THAT(parse_dns(with(62)).error().message, HasSubstr("longer than 255 bytes, at byte 12"));
}

/// Each pointer leads to the one before, without a label between: legal one by one, work without end together.
TEST(Dns, AChainOfPointersIsBounded) {
  const auto chain = [](std::size_t pointers) {
    // In the data of an unknown type: a root at 23, then the pointers.
    std::string data(1, '\0');
    for (std::size_t i = 0; i < pointers; ++i) {
      const auto target = i == 0 ? 23 : 23 + 1 + 2 * (i - 1);
      data += static_cast<char>(0xc0 | target >> 8);
      data += static_cast<char>(target & 0xff);
    }
    auto bytes = message_of({0, 1, 1, 0}, "00 ff00 0001 00000000");
    bytes += static_cast<char>(data.size() >> 8);
    bytes += static_cast<char>(data.size() & 0xff);
    bytes += data;
    const auto last = 23 + 1 + 2 * (pointers - 1);
    bytes += static_cast<char>(0xc0 | last >> 8);
    bytes += static_cast<char>(last & 0xff);
    return bytes + from_hex("0001 0001 00000000 0000");
  };
  EXPECT_TRUE(parse_dns(chain(126)).ok()) << parse_dns(chain(126)).error().message;
  EXPECT_THAT(parse_dns(chain(127)).error().message, HasSubstr("more than 127 pointers"));
}

TEST(Dns, WhatNoMessageCanHoldIsNotWritten) {
  DnsMessage message;
  message.opcode = 16;
  EXPECT_THAT(encode_dns(message).error().message, HasSubstr("opcode 16"));
  message.opcode = 0;
  message.rcode = 16;
  EXPECT_THAT(encode_dns(message).error().message, HasSubstr("rcode 16"));
  message.rcode = 0;
  message.answers.push_back({name("a"), dns_type::txt, dns_class::in, 0, std::string(65536, 'x')});
  EXPECT_THAT(encode_dns(message).error().message, HasSubstr("65536 bytes of data"));
  message.answers[0].data.resize(65535);
  EXPECT_THAT(encode_dns(message).error().message, HasSubstr("at most 65535"));
  message.answers[0].data.resize(65535 - 12 - 3 - 10);
  EXPECT_EQ(encoded(message).size(), dns_message_limit);
  message.answers[0] = {name("a"), dns_type::mx, dns_class::in, 0, "no name"};
  EXPECT_THAT(encode_dns(message).error().message, HasSubstr("not of its form"));
  message.answers[0].data = std::string("xx\0y", 4);
  EXPECT_THAT(encode_dns(message).error().message, HasSubstr("not of its form"));
}

TEST(Dns, BrokenEdnsIsRefused) {
  auto message = parsed(packet("query_a_options"));
  message.additional.push_back(message.additional[0]);
  EXPECT_THAT(edns_of(message).error().message, HasSubstr("more than one"));
  message.additional.pop_back();
  message.additional[0].name = name("shop");
  EXPECT_THAT(edns_of(message).error().message, HasSubstr("root"));
  message.additional[0].name = DnsName();
  message.additional[0].data.pop_back();
  EXPECT_THAT(edns_of(message).error().message, HasSubstr("cut short"));
  message.additional[0].data.resize(3);
  EXPECT_THAT(edns_of(message).error().message, HasSubstr("cut short"));
  DnsEdns edns;
  edns.options.push_back({1, std::string(65536, 'x')});
  EXPECT_FALSE(to_record(edns).ok());
  edns.options[0].data.resize(65535);
  EXPECT_FALSE(to_record(edns).ok());
  edns.options[0].data.resize(65531);
  EXPECT_TRUE(to_record(edns).ok());
}

// --- Properties

TEST(Dns, WhatIsWrittenIsReadAgain) {
  for (std::uint64_t round = 0; round < 3000; ++round) {
    Stream random(11, "dns messages", round);
    const auto message = random_message(random);
    const auto bytes = encode_dns(message);
    ASSERT_TRUE(bytes.ok()) << "round " << round << ": " << bytes.error().message;
    const Walled walled(*bytes);
    const auto again = parse_dns(walled.view());
    ASSERT_TRUE(again.ok()) << "round " << round << ": " << again.error().message;
    ASSERT_TRUE(*again == message) << "round " << round;
  }
}

TEST(Dns, EveryTruncationIsRefusedOrReadWithoutLookingOutside) {
  auto packets = dns_packets::all();
  for (std::uint64_t round = 0; round < 20; ++round) {
    Stream random(12, "dns messages", round);
    packets.push_back(encoded(random_message(random)));
  }
  for (const auto& bytes : packets) {
    const auto whole = parsed(bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Walled walled(std::string_view(bytes).substr(0, size));
      const auto message = parse_dns(walled.view());
      // Only bytes behind the last record can be missed by nobody.
      ASSERT_EQ(message.ok(), size >= bytes.size() - whole.trailing.size()) << size << " of " << bytes.size();
      ASSERT_EQ(dns_ttl_fields(walled.view()).ok(), message.ok());
    }
  }
}

TEST(Dns, ChangedBytesAreRefusedOrReadWithoutLookingOutside) {
  const auto packets = dns_packets::all();
  std::size_t refused = 0, read = 0;
  for (std::uint64_t round = 0; round < 20000; ++round) {
    Stream random(13, "dns bytes", round);
    auto bytes = packets[random.below(packets.size())];
    for (auto left = random.below(4) + 1; left > 0; --left)
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    const Walled walled(bytes);
    const auto message = parse_dns(walled.view());
    ++(message.ok() ? read : refused);
    if (message) {
      ASSERT_TRUE(parsed(encoded(*message)) == *message) << "round " << round;
      (void)edns_of(*message);
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(read, 1000u);
}
