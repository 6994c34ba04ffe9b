// Notices that a file has become another: written in place, renamed over, or behind a symbolic link that was swapped
// (as Kubernetes does it with "..data").
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node::runs {

class FileWatch {
 public:
  /// Errors: bad_input when its folder is none.
  static base::Expected<std::unique_ptr<FileWatch>> start(const std::string& path);

  /// Readable when changed() may have something to say.
  int fd() const { return fd_.get(); }
  /// Something happened to the file, or to a link on the way to it, since the last call. It may still say the same.
  bool changed();

 private:
  FileWatch(std::string path, base::UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  base::Status watch_folders();

  std::string path_;
  base::UniqueFd fd_;
  std::map<int, std::filesystem::path> folders_;  ///< by the number of their watch
};

}  // namespace leafcutter::node::runs
