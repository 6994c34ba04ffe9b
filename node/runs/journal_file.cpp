#include "node/runs/journal_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace leafcutter::node::runs {
namespace {

constexpr std::size_t buffered_bytes = 256 << 10;

}  // namespace

base::Expected<std::unique_ptr<JournalFile>> JournalFile::create(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (fd) return std::unique_ptr<JournalFile>(new JournalFile(path, std::move(fd)));
  if (errno == EEXIST)
    return base::Error{base::ErrorCode::bad_input,
                       "\"" + path + "\" exists; a journal is never written over: name a new file",
                       {"--journal", 0, 0}};
  auto error = base::system_error("cannot create " + path, errno);
  return base::Error{base::ErrorCode::bad_input, error.message, {"--journal", 0, 0}};
}

JournalFile::~JournalFile() {
  if (begun_)
    (void)close();
  else
    ::unlink(path_.c_str());
}

void JournalFile::begin(std::string_view line) {
  const std::lock_guard lock(mutex_);
  buffer_.insert(0, line);
  begun_ = true;
}

void JournalFile::append(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  buffer_ += lines;
  if (buffer_.size() >= buffered_bytes) write_out();
}

void JournalFile::flush() {
  const std::lock_guard lock(mutex_);
  write_out();
}

base::Status JournalFile::close() {
  const std::lock_guard lock(mutex_);
  write_out();
  fd_.reset();
  if (failed_ != 0) return base::system_error("cannot write " + path_, failed_);
  return base::ok();
}

/// After a failure nothing more is written: a record in the middle would be missing unseen.
void JournalFile::write_out() {
  if (!begun_) return;
  std::string_view rest = buffer_;
  while (!rest.empty() && failed_ == 0 && fd_) {
    const auto written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      failed_ = errno;
    else
      rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

}  // namespace leafcutter::node::runs
