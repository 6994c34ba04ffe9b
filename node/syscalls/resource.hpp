// What resource_class() is made of, apart for its tests.
#pragma once

#include <string>
#include <string_view>

namespace leafcutter::node {

/// One component of a path with what varies between runs replaced by "#": runs of digits ("segment-0017.log" ->
/// "segment-#.log"), UUIDs, and tokens that look drawn at random ("tmp.Xk29dQ" -> "tmp.#").
std::string name_class(std::string_view component);

/// "." and ".." removed without looking at the file system, no slash at the end.
std::string normal_path(const std::string& path);

/// What is left of `path` below `folder`: "." for the folder itself, empty when it is elsewhere.
std::string below(const std::string& path, const std::string& folder);

}  // namespace leafcutter::node
