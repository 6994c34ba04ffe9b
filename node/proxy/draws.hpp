// The random choices of one fault on one connection and direction: a pure function of (seed, link, connection,
// direction, fault), so that no other fault, connection or thread changes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/random.hpp"
#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

class FaultDecisions;

struct DrawKey {
  std::uint64_t seed = 0;
  std::string_view link;
  std::uint64_t connection = 0;
  Direction direction = Direction::to_upstream;
  std::string_view fault;
  const FaultDecisions* recorded = nullptr;  ///< not null: these are made again, where there would be a draw
};

class Draws {
 public:
  /// `purpose` keeps draws apart whose numbers would otherwise depend on each other ("select", "value").
  Draws(const DrawKey& key, std::string_view purpose);

  /// Draws nothing for probabilities of 0 and 1.
  bool happens(double probability);
  std::uint64_t below(std::uint64_t bound) { return stream_.below(bound); }
  /// Not negative.
  Duration duration(const Distribution& distribution);
  std::uint64_t raw() { return stream_.next(); }

 private:
  double unit();  ///< in (0, 1)
  double normal();
  base::Stream stream_;
};

}  // namespace leafcutter::node::proxy
