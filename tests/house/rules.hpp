// The rules of the house that no compiler checks: which room may include which, and how a file must look. Each takes a
// tree of sources and tells every place where it is broken.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace house {

struct Breach {
  std::string rule;  ///< "floors", "narrow includes", "no sleeping", "length", "header comment", "machine paths",
                     ///< "one definition"
  std::string file;  ///< below the tree's root
  std::size_t line = 0;
  std::string text;
};

/// Everything in `root` but .git, build and what a run leaves behind.
std::vector<Breach> inspect(const std::filesystem::path& root);

inline constexpr std::size_t longest_file = 600;  ///< lines

}  // namespace house
