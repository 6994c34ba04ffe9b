// The arguments of a fault in a rule: what follows the colon in "short:100" or "no-space:1M,EDQUOT", read as the
// parameters of the fault's kind.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/fault_kinds.hpp"
#include "scenarios/words.hpp"

namespace leafcutter::scenarios::rules {

/// What stands between commas, with its place in the line.
struct Piece {
  std::string text;
  std::size_t at = 0;
};

/// The word's value from `from` on, cut at every `separator`.
std::vector<Piece> pieces_of(const Word& word, std::size_t from, char separator);

/// The parameters in the order of the kind's definition, from `next` on; events are keys of their own. `word` is
/// KIND[:ARGUMENT...], or has that as its value. An optional one is left out by nothing between two commas. False: see
/// `mistake`.
bool take_given(const FaultKind& kind, const Word& word, std::size_t next, Value& params, Mistake& mistake);

/// Whether `params` has all that the kind needs. False: see `mistake`.
bool has_required(const FaultKind& kind, const Word& word, const Value& params, Mistake& mistake);

/// Both.
bool take_arguments(const FaultKind& kind, const Word& word, std::size_t next, Value& params, Mistake& mistake);

/// The value of an argument, as it is checked and kept: one text for one meaning.
Value argument_value(const FaultParameter& parameter, const std::string& text);

}  // namespace leafcutter::scenarios::rules
