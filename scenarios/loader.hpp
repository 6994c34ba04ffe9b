// From a YAML document to a checked Scenario, or to every mistake in it. Nothing here runs anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::scenarios {

/// Everything wrong with a document, in the order of their places. Never empty on failure.
struct LoadResult {
  std::optional<Scenario> scenario;
  std::vector<base::Error> errors;  ///< bad_input; each names line, column, key, what was found, the nearest valid name
  std::vector<base::Error> warnings;  ///< accepted, but probably not meant
};

struct LoadOptions {
  std::string variant;         ///< applies the variant of every service that declares it
  bool check_programs = true;  ///< run[0] must exist and be executable
};

/// `path` is a file, or a folder that holds scenario.yaml (or exactly one .yaml file with a `leafcutter` key).
LoadResult load_file(const std::string& path, const LoadOptions& options = {});

/// `file` is used for messages and, with its folder, for relative paths.
LoadResult load_text(std::string_view text, const std::string& file, const LoadOptions& options = {});

/// SHA-256 over the document, the variant and the bytes of every program the services run from the scenario's folder:
/// the same identity means that earlier results still stand.
std::string identity(const Scenario& scenario);

/// JSON Schema (draft 2020-12) generated from the same table of keys that the loader reads.
Value json_schema();

/// The scenario reference page (Markdown), generated from the same table.
std::string reference_page();

}  // namespace leafcutter::scenarios
