#include "protocols/dns_frames.hpp"

#include <algorithm>

#include "protocols/dns.hpp"

namespace leafcutter::protocols {

std::size_t DnsFrameReader::wanted() const { return static_cast<std::size_t>(length_[0]) << 8 | length_[1]; }

std::size_t DnsFrameReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (length_bytes_ < length_.size()) {
    if (taken == bytes.size()) return taken;
    length_[length_bytes_++] = static_cast<unsigned char>(bytes[taken++]);
  }
  const auto piece = bytes.substr(taken, wanted() - message_.size());
  // Grows with what has come, not with what was announced: a thousand idle connections must not cost 64 KiB each.
  message_.append(piece);
  complete_ = message_.size() == wanted();
  return taken + piece.size();
}

std::optional<std::string> DnsFrameReader::take() {
  if (!complete_) return std::nullopt;
  auto message = std::move(message_);
  *this = DnsFrameReader();
  return message;
}

std::string DnsFrameReader::partial(std::size_t most) const {
  auto begun = std::string(length_.begin(), length_.begin() + static_cast<std::ptrdiff_t>(length_bytes_));
  begun.append(message_, 0, most);
  begun.resize(std::min(begun.size(), most));
  return begun;
}

base::Status DnsFrameReader::finish() const {
  if (!in_message()) return base::ok();
  const auto what = length_bytes_ < length_.size() ? std::string("the length of a message")
                                                   : "a message of " + std::to_string(wanted()) + " bytes, after " +
                                                         std::to_string(message_.size());
  return base::Error{base::ErrorCode::protocol, "DNS over TCP ended within " + what, {}};
}

base::Expected<std::string> dns_frame(std::string_view message) {
  if (message.size() > dns_message_limit)
    return base::Error{base::ErrorCode::bad_input,
                       "a DNS message of " + std::to_string(message.size()) + " bytes; at most 65535 can be framed",
                       {}};
  std::string out;
  out.reserve(message.size() + 2);
  out += static_cast<char>(message.size() >> 8);
  out += static_cast<char>(message.size() & 0xff);
  out += message;
  return out;
}

}  // namespace leafcutter::protocols
