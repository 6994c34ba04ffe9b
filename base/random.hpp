// Counter-based randomness: every draw is a pure function of (key, stream name, leaf, draw number), so that removing
// one decision changes no other. Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) is for deriving keys only. No floating point anywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace leafcutter::base {

using PhiloxKey = std::array<std::uint32_t, 2>;
using PhiloxBlock = std::array<std::uint32_t, 4>;

/// One block of Philox4x32-10.
PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key);

/// The SplitMix64 output for state `seed` (one step).
std::uint64_t split_mix(std::uint64_t seed);

/// FNV-1a, 64 bits.
std::uint64_t fnv1a(std::string_view bytes);

/// The draws of one named stream of one leaf: counter = (draw, H32(stream), leaf low, leaf high).
class Stream {
 public:
  Stream(std::uint64_t key, std::string_view name, std::uint64_t leaf);

  std::uint64_t next();

  /// Uniform in [0, bound), bound > 0; Lemire's multiply-and-reject.
  std::uint64_t below(std::uint64_t bound);

 private:
  PhiloxKey key_;
  std::uint32_t stream_;
  std::uint64_t leaf_;
  std::uint32_t draw_ = 0;
};

}  // namespace leafcutter::base
