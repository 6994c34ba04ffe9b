// DNS over TCP (RFC 1035 §4.2.2, RFC 7766 §8): each message behind its length in two bytes. Takes a stream apart as its
// bytes arrive, however they are cut, and frames messages. No I/O.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::protocols {

/// Splits one direction of a connection into messages. Holds one message at most, of 65,535 bytes at most.
class DnsFrameReader {
 public:
  /// Consumes bytes up to the end of the current message at most; returns how many were taken. A finished message waits
  /// in take(), and until it is taken nothing more is.
  std::size_t feed(std::string_view bytes);

  /// The finished message without its length. Whatever came is handed out, also what is too short to be a message.
  std::optional<std::string> take();

  /// What has come of a message that has not ended, its length first: at most that many bytes, and how many there are.
  std::string partial(std::size_t most = std::string::npos) const;
  std::size_t partial_bytes() const { return length_bytes_ + message_.size(); }

  bool in_message() const { return length_bytes_ > 0 && !complete_; }  ///< one has begun and not ended

  /// The end of the stream. Errors: protocol (in the middle of a message).
  base::Status finish() const;

 private:
  std::size_t wanted() const;

  std::array<unsigned char, 2> length_ = {};
  std::size_t length_bytes_ = 0;
  std::string message_;
  bool complete_ = false;
};

/// `message` behind its length. Errors: bad_input (more than 65,535 bytes).
base::Expected<std::string> dns_frame(std::string_view message);

}  // namespace leafcutter::protocols
