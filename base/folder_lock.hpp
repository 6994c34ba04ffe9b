// One process at a time works in a folder; the others are told which. What a killed one left is known by its lock,
// which the kernel let go.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::base {

/// The file "lock" in a folder, with the owner's process number in it; held until this goes, or its process does.
class FolderLock {
 public:
  /// Errors: conflict (names the process), io.
  static Expected<FolderLock> take(const std::string& folder);

  /// Nothing: somebody holds it, or it cannot be opened.
  static std::optional<FolderLock> take_if_free(const std::string& folder);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// Removes the folders in `parent` whose names begin with `prefix`, that are ours and whose lock nobody holds any more.
/// Their number.
std::size_t sweep_folders(const std::string& parent, std::string_view prefix);

}  // namespace leafcutter::base
