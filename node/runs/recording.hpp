// The decisions in a journal, read back for a replay.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "node/proxy/decisions.hpp"

namespace leafcutter::node::runs {

struct Recording {
  std::uint64_t seed = 0;
  std::string digest;  ///< SHA-256 of the document that was run
  std::shared_ptr<const proxy::Decisions> decisions;
  std::uint64_t dropped = 0;  ///< records that the journal lacks
  bool whole = false;         ///< it ends with `run-completed`
  bool reloaded = false;      ///< the document was replaced on the way: what follows that is not among the decisions
};

/// Errors: bad_input with file and line.
base::Expected<Recording> read_recording(const std::string& path);
base::Expected<Recording> read_recording_text(std::string_view text, const std::string& file);

}  // namespace leafcutter::node::runs
