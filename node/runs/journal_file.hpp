// The file that keeps the records of a run. Writers are never kept waiting by more than a write to the file; what could
// not be written is said once, at the end.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node::runs {

class JournalFile {
 public:
  /// Errors: bad_input when there is such a file already, or when it cannot be made.
  static base::Expected<std::unique_ptr<JournalFile>> create(const std::string& path);
  /// Takes the file away again if nothing was begun.
  ~JournalFile();

  /// The first line, ahead of whatever has been appended before it was known.
  void begin(std::string_view line);
  /// Whole lines. Any thread.
  void append(std::string_view lines);
  /// Everything appended so far is the file's.
  void flush();
  /// Flushes. Errors: io, the first thing that went wrong since the beginning.
  base::Status close();

 private:
  JournalFile(std::string path, base::UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  void write_out();

  std::string path_;
  std::mutex mutex_;
  base::UniqueFd fd_;
  std::string buffer_;
  bool begun_ = false;
  int failed_ = 0;  ///< errno
};

}  // namespace leafcutter::node::runs
