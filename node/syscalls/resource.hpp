// What resource_class() is made of, apart for its tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace leafcutter::node {

/// One component of a path with what varies between runs replaced by "#": runs of digits ("segment-0017.log" ->
/// "segment-#.log"), UUIDs, and tokens that look drawn at random ("tmp.Xk29dQ" -> "tmp.#").
std::string name_class(std::string_view component);

/// "." and ".." removed without looking at the file system, no slash at the end.
std::string normal_path(const std::string& path);

/// What is left of `path` below `folder`: "." for the folder itself, empty when it is elsewhere.
std::string below(const std::string& path, const std::string& folder);

/// resource_class() with a memory: a program names the same few paths again and again, and each of its notified calls
/// waits for the answer.
class ResourceClasses {
 public:
  ResourceClasses(std::string data_folder, std::vector<std::string> path_globs);

  /// Good until the next question.
  const std::string& of(const std::string& path);

 private:
  static constexpr std::size_t remembered = 4096;  ///< paths; then all are forgotten

  std::string data_folder_;
  std::vector<std::string> path_globs_;
  std::unordered_map<std::string, std::string> known_;
};

}  // namespace leafcutter::node
