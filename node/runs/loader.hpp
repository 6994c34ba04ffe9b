// From a Run document, in YAML or JSON, to a checked Run, or to every mistake in it, those included that would show
// only in a later phase. Nothing here listens or connects.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "node/runs/run.hpp"

namespace leafcutter::node::runs {

struct RunLoadResult {
  std::optional<Run> run;
  /// bad_input, in the order of their places: "run.yaml:9:20: phases[0].proxies[0].faults[0].probability: expected
  /// ...". Never empty on failure.
  std::vector<base::Error> errors;
  std::vector<base::Error> warnings;  ///< accepted, but probably not meant
};

/// A file that ends with .json is JSON, every other YAML (which JSON is, too).
RunLoadResult load_run_file(const std::string& path);
/// `file` is for messages, and tells JSON from YAML.
RunLoadResult load_run_text(std::string_view text, const std::string& file);

}  // namespace leafcutter::node::runs
