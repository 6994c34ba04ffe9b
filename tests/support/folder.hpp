// A folder of a test's own that goes, with everything in it, when its owner does.
#pragma once

#include <string>

namespace leafcutter::tests {

class Folder {
 public:
  /// In the folder for temporary files.
  Folder();
  explicit Folder(const std::string& parent);
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// The file's path. Folders on the way to it are made.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace leafcutter::tests
