// A file of lines that only grows: a line that append() took is there after any crash, a line that it refused is not,
// and a line that a crash tore apart is dropped when the file is next opened.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "descriptor.hpp"

namespace library {

class LineLog {
 public:
  enum class Sync { each_line, never };

  explicit LineLog(const std::string& path, Sync sync = Sync::each_line)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)), sync_(sync) {
    if (fd_ < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::size_t begin = 0;
    for (auto end = bytes.find('\n'); end != std::string::npos; begin = end + 1, end = bytes.find('\n', begin))
      lines_.push_back(bytes.substr(begin, end - begin));
    length_ = static_cast<off_t>(begin);
    if (begin != bytes.size()) cut_back();
  }
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;
  ~LineLog() { ::close(fd_); }

  const std::vector<std::string>& lines() const { return lines_; }

  bool append(const std::string& line) {
    const auto bytes = line + "\n";
    if (!write_all(fd_, bytes) || (sync_ == Sync::each_line && ::fsync(fd_) != 0)) {
      cut_back();
      return false;
    }
    length_ += static_cast<off_t>(bytes.size());
    lines_.push_back(line);
    return true;
  }

 private:
  /// Half a line must not become the beginning of the next one. Where it cannot be removed, the next start does it.
  void cut_back() {
    if (::ftruncate(fd_, length_) == 0) return;
    std::fprintf(stderr, "cannot remove half a line: %s\n", std::strerror(errno));
    std::abort();
  }

  int fd_;
  Sync sync_;
  off_t length_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace library
