// A data folder and its image in a scratch folder, on memory like a leaf's where the host has /dev/shm.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "node/syscalls/durable_image.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::node::tests {

/// A folder of the test's own below `parent`, removed with everything in it.
class DurableScratch {
 public:
  explicit DurableScratch(const std::string& parent = memory());

  static std::string memory();  ///< /dev/shm, or the place for temporary files
  static std::string disk();    ///< the place for temporary files

  std::string data() const { return folder_ / "data"; }
  std::string image() const { return folder_ / "image"; }
  std::string operator/(const std::string& name) const { return data() + "/" + name; }

 private:
  leafcutter::tests::Folder folder_;
};

/// path -> what it is: "file 0644 3:abc", "folder 0755", "link -> target". Contents beyond 64 bytes as a digest.
using FolderPicture = std::map<std::string, std::string>;
FolderPicture picture(const std::string& folder);
std::string picture_of_bytes(const std::string& bytes);  ///< "3:abc"

struct DurableTest : testing::Test {
  /// Starts the image; what is in the folder by then is durable.
  void start(DurableImage::Capture capture = DurableImage::Capture::at_start);

  base::UniqueFd open(const std::string& name, int flags = 0) const;    ///< O_RDWR | O_CREAT and `flags`
  void write(const std::string& name, const std::string& bytes) const;  ///< the file is these bytes, same inode
  void put(const std::string& name, std::uint64_t at, const std::string& bytes) const;
  std::string read(const std::string& name) const;  ///< "<none>" when there is no such file
  void move(const std::string& from, const std::string& to) const;
  void remove(const std::string& name) const;
  void folder(const std::string& name) const;
  bool there(const std::string& name) const;

  void sync(const DataFile& file, bool data_only = false);
  PowerLoss lose_power();

  DurableScratch scratch;
  std::optional<DurableImage> image;
};

}  // namespace leafcutter::node::tests
