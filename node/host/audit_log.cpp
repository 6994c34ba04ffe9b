#include "node/host/audit_log.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/files.hpp"
#include "base/text.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;
using protocols::AuditPiece;

constexpr std::uint64_t longest_log = std::uint64_t{1} << 32;

/// Others who append wait meanwhile.
class AuditTurn {
 public:
  explicit AuditTurn(int fd) : fd_(fd) {
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~AuditTurn() { ::flock(fd_, LOCK_UN); }
  AuditTurn(const AuditTurn&) = delete;
  AuditTurn& operator=(const AuditTurn&) = delete;

 private:
  int fd_;
};

std::int64_t system_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

base::Status sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto folder = slash == std::string::npos ? std::string(".") : slash == 0 ? "/" : path.substr(0, slash);
  const base::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return base::system_error("cannot sync " + folder, errno);
  return base::ok();
}

}  // namespace

base::Expected<AuditLog> AuditLog::open(Options options, base::SigningKey key) {
  AuditLog log;
  log.options_ = std::move(options);
  log.key_ = std::move(key);
  const auto& path = log.options_.path;
  log.fd_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log.fd_) return base::system_error("cannot open the audit log " + path, errno);
  if (const auto synced = sync_folder_of(path); !synced) return synced.error();
  const AuditTurn turn(log.fd_.get());
  if (const auto read = log.catch_up(); !read) return read.error();
  return log;
}

/// Reads what others have appended, verifies it, and mends what a crash has left.
base::Status AuditLog::catch_up() {
  struct stat about {};
  if (::fstat(fd_.get(), &about) != 0) return base::system_error("cannot look at the audit log", errno);
  const auto size = static_cast<std::uint64_t>(about.st_size);
  const auto refuse = [&](const std::string& why) {
    return base::Status(Error{ErrorCode::conflict,
                              "the audit log " + options_.path + " does not verify at record " + std::to_string(next_) +
                                  ": " + why + "; nothing is appended to it. Keep it, and let another one begin",
                              {}});
  };
  if (size < offset_) return refuse("it has become shorter");
  if (size > longest_log) return refuse("it is longer than 4 GiB");
  std::string bytes(size - offset_, '\0');
  const auto whole = base::read_at(fd_.get(), bytes.data(), bytes.size(), offset_, "the audit log");
  if (!whole) return whole.error();
  std::string_view rest(bytes);
  while (!rest.empty()) {
    const auto piece = protocols::read_frame(rest);
    if (piece.kind == AuditPiece::Kind::garbage) return refuse(piece.why);
    if (piece.kind == AuditPiece::Kind::torn) break;
    const auto record = protocols::decode_record(piece.frame);
    if (!record) return refuse(record.error().message);
    if (!protocols::signed_by(piece.frame, key_->public_key())) return refuse("it is not signed by this node's key");
    if (record->sequence != next_) return refuse("it is record " + std::to_string(record->sequence));
    if (record->previous != (next_ == 0 ? std::string(32, '\0') : head_)) return refuse("it follows another record");
    if (next_ == 0) first_ = piece.frame.hash;
    head_ = piece.frame.hash;
    ++next_;
    offset_ += piece.frame.size;
    rest.remove_prefix(piece.frame.size);
  }
  if (next_ == 0 && rest.empty())
    return write_record({.stage = "begin", .detail = protocols::key_statement(key_->public_key())});
  if (rest.empty()) return base::ok();
  const auto aside = options_.path + ".torn-" + std::to_string(next_);
  if (const auto kept = base::write_file_atomically(aside, rest); !kept) return kept;
  if (::ftruncate(fd_.get(), static_cast<off_t>(offset_)) != 0)
    return base::system_error("cannot take a torn tail off the audit log", errno);
  if (next_ == 0)
    if (const auto begun = write_record({.stage = "begin", .detail = protocols::key_statement(key_->public_key())});
        !begun)
      return begun;
  return write_record(
      {.stage = "torn",
       .detail = std::to_string(rest.size()) + " bytes of a record that a crash left unfinished are in " + aside});
}

base::Status AuditLog::write_record(protocols::AuditRecord record) {
  record.sequence = next_;
  record.time = options_.clock ? options_.clock() : system_time();
  record.node = options_.node;
  record.previous = next_ == 0 ? std::string(32, '\0') : head_;
  const auto frame = protocols::seal_record(record, *key_);
  auto written = base::write_at(fd_.get(), frame, offset_, "the audit log");
  if (written && ::fdatasync(fd_.get()) != 0) written = base::system_error("cannot sync the audit log", errno);
  if (!written) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(offset_)) != 0) fd_.reset();  // whoever opens it next mends it
    return written;
  }
  head_ = protocols::read_frame(frame).frame.hash;
  if (next_ == 0) first_ = head_;
  ++next_;
  offset_ += frame.size();
  return base::ok();
}

base::Status AuditLog::append(protocols::AuditRecord record) {
  if (!fd_) return Error{ErrorCode::io, "the audit log " + options_.path + " could not be written before", {}};
  const AuditTurn turn(fd_.get());
  if (const auto read = catch_up(); !read) return read;
  return write_record(std::move(record));
}

base::Expected<protocols::AuditAnchor> AuditLog::head() {
  if (!fd_) return Error{ErrorCode::io, "the audit log " + options_.path + " could not be written before", {}};
  const AuditTurn turn(fd_.get());
  if (const auto read = catch_up(); !read) return read.error();
  return protocols::AuditAnchor{next_ - 1, options_.clock ? options_.clock() : system_time(), options_.node, first_,
                                head_};
}

base::Expected<base::SigningKey> audit_key(const std::string& folder) {
  const auto path = folder + "/audit.key";
  if (::access(path.c_str(), F_OK) == 0) return base::SigningKey::load(path);
  auto made = base::SigningKey::generate();
  if (!made) return made;
  if (const auto saved = made->save(path); !saved) {
    if (saved.error().code == ErrorCode::conflict) return base::SigningKey::load(path);
    return saved.error();
  }
  if (const auto synced = sync_folder_of(path); !synced) return synced.error();
  return made;
}

}  // namespace leafcutter::node::host
