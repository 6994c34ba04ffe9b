// One process at a time works in a ledger's folder; the others are told which.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::coordinator {

/// Held until it goes, or its process does.
class FolderLock {
 public:
  /// Errors: conflict (names the process), io.
  static base::Expected<FolderLock> take(const std::string& folder);

 private:
  explicit FolderLock(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

}  // namespace leafcutter::coordinator
