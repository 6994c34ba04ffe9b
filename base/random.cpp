#include "base/random.hpp"

namespace leafcutter::base {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

PhiloxBlock philox(PhiloxBlock c, PhiloxKey k) {
  for (int round = 0; round < 10; ++round) {
    const auto a = std::uint64_t{0xD2511F53} * c[0];
    const auto b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

std::uint64_t split_mix(std::uint64_t seed) {
  auto z = seed + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : bytes) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

Stream::Stream(std::uint64_t key, std::string_view name, std::uint64_t leaf)
    : key_{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}, leaf_(leaf) {
  const auto hash = fnv1a(name);
  stream_ = static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

std::uint64_t Stream::next() {
  const auto block =
      philox({draw_++, stream_, static_cast<std::uint32_t>(leaf_), static_cast<std::uint32_t>(leaf_ >> 32)}, key_);
  return block[0] | std::uint64_t{block[1]} << 32;
}

std::uint64_t Stream::below(std::uint64_t bound) {
  auto product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const auto threshold = -bound % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace leafcutter::base
