// Seeded mutations of bytes: the same seed gives the same input on every machine.
#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"

namespace fuzz {

/// One of the corpus, changed in one to eight places: bytes flipped, replaced, removed, repeated, cut off, or taken
/// from another member of the corpus.
std::string mutate(const std::vector<std::string>& corpus, leafcutter::base::Stream& random);

}  // namespace fuzz
