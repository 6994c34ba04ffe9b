#include "tests/support/folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace leafcutter::tests {

namespace fs = std::filesystem;

Folder::Folder() : Folder(fs::temp_directory_path().string()) {}

Folder::Folder(const std::string& parent) : path_(parent + "/leafcutter-test-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr)
    throw std::runtime_error("no folder for a test in " + parent + ": " + std::strerror(errno));
}

Folder::~Folder() {
  std::error_code ignored;  // what cannot be removed is seen by the test program's look at what is left
  fs::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  const auto file = *this / name;
  fs::create_directories(fs::path(file).parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

}  // namespace leafcutter::tests
