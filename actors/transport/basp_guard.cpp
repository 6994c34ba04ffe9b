#include "actors/transport/basp_guard.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

enum BaspOperation : std::uint8_t {
  server_handshake = 0,
  client_handshake = 1,
  direct_message = 2,
  routed_message = 3,
  monitor_message = 4,
  down_message = 5,
  heartbeat = 6,
};

constexpr std::uint8_t named_receiver = 0x01;
constexpr std::uint64_t response_bit = 0x8000000000000000;
/// A node_id is a process number and 20 bytes; what is said about one actor is that twice and a reason.
constexpr std::size_t handshake_bytes = 256;
constexpr std::size_t notice_bytes = 4096;
constexpr std::size_t types_bytes = 1024;

Error offence(const std::string& what) { return Error{ErrorCode::protocol, what}; }

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

/// A size as CAF writes it: seven bits a byte, the lowest first.
std::optional<std::uint64_t> take_size(std::string_view& bytes) {
  std::uint64_t size = 0;
  for (int shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    size |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return size;
  }
  return std::nullopt;
}

bool is_plain_value(std::string_view type) {
  // CAF's own types that are data and nothing else; no actor handle that is not typed, which would be a link.
  static constexpr std::array<std::string_view, 26> plain = {
      "@atom", "@charbuf", "@duration", "@error",  "@i16",    "@i32",      "@i64",       "@i8",  "@ldouble",
      "@node", "@str",     "@strmap",   "@strset", "@strvec", "@timespan", "@timestamp", "@u16", "@u16_str",
      "@u32",  "@u32_str", "@u64",      "@u8",     "@unit",   "bool",      "double",     "float"};
  return std::find(plain.begin(), plain.end(), type) != plain.end();
}

}  // namespace

Status check_message_types(std::string_view types) {
  constexpr std::string_view beginning = "@<>";
  if (!types.starts_with(beginning)) return offence("a message without types");
  types.remove_prefix(beginning.size());
  while (!types.empty()) {
    if (types.front() != '+') return offence("a message without types");
    types.remove_prefix(1);
    const auto type = types.substr(0, types.find('+'));
    types.remove_prefix(type.size());
    const bool named = type.find("leafcutter::") != std::string_view::npos && type.front() != '@';
    if (!named && !is_plain_value(type))
      return offence("a message with a value of type `" + std::string(type.substr(0, 64)) + "`");
  }
  return base::ok();
}

Status BaspGuard::take(std::string_view piece) {
  if (awaited_bytes_ == 0) return header(piece);
  if (piece.size() != awaited_bytes_) return offence("a payload that is not as long as its header says");
  awaited_bytes_ = 0;
  return payload(piece);
}

Status BaspGuard::header(std::string_view bytes) {
  if (bytes.size() != header_bytes) return offence("a header of " + std::to_string(bytes.size()) + " bytes");
  operation_ = static_cast<std::uint8_t>(bytes[0]);
  const auto flags = static_cast<std::uint8_t>(bytes[3]);
  const auto size = static_cast<std::size_t>(big_endian(bytes.substr(4, 4)));
  const bool response = (big_endian(bytes.substr(8, 8)) & response_bit) != 0;
  const auto destination = big_endian(bytes.substr(24, 8));
  awaited_bytes_ = size;
  dropping_ = false;
  if (!greeted() && operation_ != client_handshake) return offence("no handshake to begin with");
  switch (operation_) {
    case client_handshake:
      if (size == 0 || size > handshake_bytes) return offence("a handshake of " + std::to_string(size) + " bytes");
      return base::ok();
    case direct_message:
      dropping_ = (flags & named_receiver) != 0 || !(response || rules_.may_reach(destination));
      if (size == 0 || size > rules_.payload_at_most) {
        return offence("a message of " + std::to_string(size) + " bytes; at most " +
                       std::to_string(rules_.payload_at_most) + " are taken");
      }
      return base::ok();
    case monitor_message:
    case down_message:
      if (size == 0 || size > notice_bytes) return offence("a notice of " + std::to_string(size) + " bytes");
      return base::ok();
    case heartbeat:
      if (size != 0) return offence("a heartbeat with a payload");
      return base::ok();
    default:
      return offence(operation_ == routed_message ? "a message on behalf of somebody else"
                                                  : "operation " + std::to_string(operation_));
  }
}

Status BaspGuard::payload(std::string_view bytes) {
  switch (operation_) {
    case client_handshake: {
      // CAF repeats it, to have this connection used and no other.
      if (greeted()) return bytes == node_ ? base::ok() : Status(offence("a second handshake under another name"));
      const auto claimed = rules_.claim(bytes);
      if (!claimed) return claimed;
      node_ = bytes;
      return base::ok();
    }
    case direct_message: {
      if (dropping_) return base::ok();
      // Who else is to have a part in the answer: actors of other systems, by their numbers. We never ask for that.
      const auto stages = take_size(bytes);
      if (!stages || *stages != 0) return offence("a message with a way back through others");
      // An object's number, 0 for one that is named; then the name.
      if (bytes.size() < 2 || big_endian(bytes.substr(0, 2)) != 0) return offence("a message without types");
      bytes.remove_prefix(2);
      const auto size = take_size(bytes);
      if (!size || *size > bytes.size() || *size > types_bytes) return offence("a message without types");
      return check_message_types(bytes.substr(0, static_cast<std::size_t>(*size)));
    }
    default:
      // A notice begins with whose actor it is about.
      if (!bytes.starts_with(node_)) return offence("a notice about an actor of somebody else");
      return base::ok();
  }
}

}  // namespace leafcutter::actors
