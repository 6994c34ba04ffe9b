// What the faults that strike one visit of a link's site come down to: a delay, then perhaps an end, and what the
// network fault engine does to the bytes meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "node/observe/site_book.hpp"

namespace leafcutter::node {

/// The kind of fault that refuses a connection.
inline constexpr const char* refuse_kind = "refuse";

struct LinkStrikes {
  enum class End { refuse, reset, blackhole, lose_response };
  struct Delay {
    std::size_t index = 0;  ///< of the fault in the plan
    std::chrono::nanoseconds length{0};
  };
  struct Final {
    std::size_t index = 0;
    End end = End::reset;
  };

  std::vector<Delay> delays;                 ///< they add up
  std::vector<SiteBook::Strike> engine;      ///< those of a connection's bytes, in the plan's order
  std::vector<SiteBook::Strike> partitions;  ///< that begin here
  std::optional<Final> final;  ///< a second one could never take effect: the first in the plan's order stands

  std::chrono::nanoseconds delay() const;
  /// Some of the engine's come before the callee is dialled.
  bool before_dialling() const;
};

/// Strikes of kinds that this operation does not know, and delays without a length, strike nothing: they never fire,
/// which the judge then says.
LinkStrikes link_strikes(const SiteBook::Visit& visit);

}  // namespace leafcutter::node
