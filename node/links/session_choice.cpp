#include "node/links/session_choice.hpp"

#include <algorithm>
#include <limits>

namespace leafcutter::node {

std::vector<proxy::Ordinals> sessions_chosen(const scenarios::Occurrences& occurrences,
                                             const std::set<std::uint64_t>& open, std::uint64_t last) {
  constexpr auto endless = std::numeric_limits<std::uint64_t>::max();
  std::vector<proxy::Ordinals> chosen;
  std::uint64_t counted = 0;
  for (const auto session : open)
    if (occurrences.include(++counted)) chosen.push_back({session, session});
  const auto number_of = [&](std::uint64_t ordinal) { return last + (ordinal - counted); };
  const std::uint64_t n = occurrences.n;
  using Which = scenarios::Occurrences::Which;
  switch (occurrences.which) {
    case Which::nth:
      if (n > counted) chosen.push_back({number_of(n), number_of(n)});
      break;
    case Which::first:
      if (n > counted) chosen.push_back({last + 1, number_of(n)});
      break;
    case Which::every: chosen.push_back({number_of((counted / n + 1) * n), endless, n}); break;
    case Which::from: chosen.push_back({number_of(std::max(n, counted + 1)), endless}); break;
  }
  return chosen;
}

}  // namespace leafcutter::node
