// The chunked transfer coding (RFC 9112, section 7.1), decoded as it arrives: nothing is kept between two calls but a
// few numbers, wherever the bytes were cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::protocols {

class ChunkDecoder {
 public:
  using Sink = std::function<void(std::string_view data)>;

  /// Takes bytes up to the end of the body at most and hands on the data in them; returns how many were taken.
  /// Errors: protocol.
  base::Expected<std::size_t> feed(std::string_view bytes, const Sink& sink);

  bool complete() const { return phase_ == Phase::complete; }

 private:
  enum class Phase { size, extension, size_end, data, data_return, data_end, trailer, trailer_end, complete };

  static constexpr std::size_t line_limit = 64 * 1024;  ///< of all extensions and trailers together

  base::Status step(char c);
  static base::Error broken(const char* what) {
    return {base::ErrorCode::protocol, std::string("not HTTP/1: ") + what, {}};
  }
  static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  Phase phase_ = Phase::size;
  std::uint64_t left_ = 0;     ///< bytes of the current chunk still to come
  unsigned digits_ = 0;        ///< of the current size
  std::size_t line_ = 0;       ///< bytes of extensions and trailers so far
  bool trailer_empty_ = true;  ///< the current trailer line has no character yet
};

inline base::Expected<std::size_t> ChunkDecoder::feed(std::string_view bytes, const Sink& sink) {
  std::size_t taken = 0;
  while (taken < bytes.size() && phase_ != Phase::complete) {
    if (phase_ == Phase::data) {
      const auto piece =
          bytes.substr(taken, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - taken)));
      sink(piece);
      taken += piece.size();
      left_ -= piece.size();
      if (left_ == 0) phase_ = Phase::data_return;
      continue;
    }
    if (const auto stepped = step(bytes[taken]); !stepped) return stepped.error();
    ++taken;
  }
  return taken;
}

inline base::Status ChunkDecoder::step(char c) {
  switch (phase_) {
    case Phase::size: {
      const int digit = hex_digit(c);
      if (digit >= 0) {
        if (++digits_ > 15) return broken("a chunk size of more than 15 digits");
        left_ = left_ * 16 + static_cast<unsigned>(digit);
        return base::ok();
      }
      if (digits_ == 0) return broken("a chunk without a size");
      if (c == '\r')
        phase_ = Phase::size_end;
      else if (c == ';' || c == ' ' || c == '\t')
        phase_ = Phase::extension;
      else
        return broken("a chunk size that is no hexadecimal number");
      return base::ok();
    }
    case Phase::extension:
      if (++line_ > line_limit) return broken("too long chunk extensions");
      if (c == '\n') return broken("a chunk size that does not end in CR LF");
      if (c == '\r') phase_ = Phase::size_end;
      return base::ok();
    case Phase::size_end:
      if (c != '\n') return broken("a chunk size that does not end in CR LF");
      phase_ = left_ > 0 ? Phase::data : Phase::trailer;
      trailer_empty_ = true;
      digits_ = 0;
      return base::ok();
    case Phase::data_return:
      if (c != '\r') return broken("a chunk that is longer than its size");
      phase_ = Phase::data_end;
      return base::ok();
    case Phase::data_end:
      if (c != '\n') return broken("a chunk that is longer than its size");
      phase_ = Phase::size;
      return base::ok();
    case Phase::trailer:
      if (++line_ > line_limit) return broken("too long trailers");
      if (c == '\n') return broken("a trailer that does not end in CR LF");
      if (c == '\r')
        phase_ = Phase::trailer_end;
      else
        trailer_empty_ = false;
      return base::ok();
    case Phase::trailer_end:
      if (c != '\n') return broken("a trailer that does not end in CR LF");
      phase_ = trailer_empty_ ? Phase::complete : Phase::trailer;
      trailer_empty_ = true;
      return base::ok();
    case Phase::data:
    case Phase::complete: break;
  }
  return base::ok();
}

}  // namespace leafcutter::protocols
