// Bytes addressed by their SHA-256, one file each below a folder: aa/bb...; written once, atomically, verified when
// read.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::coordinator {

class Blobs {
 public:
  explicit Blobs(std::string folder) : folder_(std::move(folder)) {}

  /// Its digest. What is there already is not written again.
  base::Expected<std::string> store(std::string_view bytes) const;

  /// Errors: bad_input (not a digest), io (not there, or not what it was).
  base::Expected<std::string> load(const std::string& digest) const;

 private:
  std::string path(const std::string& digest) const {
    return folder_ + "/" + digest.substr(0, 2) + "/" + digest.substr(2);
  }
  std::string folder_;
};

/// Creates `folder` and its parents.
base::Status make_folders(const std::string& folder);

/// A rename is durable only when its folder is: syncs it.
base::Status sync_folder(const std::string& folder);

}  // namespace leafcutter::coordinator
