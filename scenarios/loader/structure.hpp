// Checks a document against the table of keys: unknown, missing and misplaced keys, forms and limits of values. What
// names mean is not looked at here.
#pragma once

#include "scenarios/loader/document.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios::loading {

/// False: this is no scenario of this version, and nothing further can be said about it.
bool check_structure(const Node& document, Notes& notes);

/// Checks any document, or a mapping in it that has that shape. `place`: what messages call it; a path ("phases[0]", or
/// empty for the whole) where the vocabulary speaks of paths.
void check_against(const Vocabulary& vocabulary, const std::string& shape, const Node& node, const std::string& place,
                   Notes& notes);

}  // namespace leafcutter::scenarios::loading
