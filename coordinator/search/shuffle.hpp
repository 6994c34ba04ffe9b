// Fisher-Yates from a named stream: the same order for the same key on every machine, which std::shuffle does not
// promise.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace leafcutter::coordinator {

template <class T>
void shuffle(std::vector<T>& items, base::Stream& stream) {
  for (std::size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[static_cast<std::size_t>(stream.below(left))]);
}

}  // namespace leafcutter::coordinator
