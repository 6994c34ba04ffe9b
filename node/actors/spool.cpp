#include "node/actors/spool.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/random.hpp"

namespace leafcutter::node {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;
using base::system_error;

constexpr const char* extension = ".spool";

/// Before each record's header and chunk. Read back on the host that wrote it only.
struct Prefix {
  std::uint32_t header = 0, chunk = 0;
  std::uint64_t check = 0;
};

/// Sizes beyond these are not ours; they bound what recovery reads on a damaged file's word.
constexpr std::uint32_t header_at_most = 4096;
constexpr std::uint32_t chunk_at_most = 64u << 20;

std::uint64_t check(std::string_view header, std::string_view chunk) {
  return base::fnv1a(header) * 3 + base::fnv1a(chunk);
}

struct Record {
  SpoolFile::Batch batch;
  std::uint64_t end = 0;
};

/// The record at `offset`; an error means that the file's good part ends here.
Expected<Record> read_record(int fd, std::uint64_t offset, const std::string& path) {
  const auto torn = [&] {
    return Error{ErrorCode::protocol, path + ": no whole record at byte " + std::to_string(offset)};
  };
  Prefix prefix;
  auto got = base::read_at(fd, reinterpret_cast<char*>(&prefix), sizeof prefix, offset, path);
  if (!got) return got.error();
  if (!*got || prefix.header > header_at_most || prefix.chunk > chunk_at_most) return torn();
  std::string header(prefix.header, '\0');
  std::string chunk(prefix.chunk, '\0');
  got = base::read_at(fd, header.data(), header.size(), offset + sizeof prefix, path);
  if (!got) return got.error();
  if (!*got) return torn();
  const auto chunk_at = offset + sizeof prefix + header.size();
  got = base::read_at(fd, chunk.data(), chunk.size(), chunk_at, path);
  if (!got) return got.error();
  if (!*got || check(header, chunk) != prefix.check) return torn();
  auto decoded = protocols::decode_batch_header(header);
  if (!decoded) return decoded.error();
  return Record{{std::move(*decoded), chunk_at, prefix.chunk}, chunk_at + chunk.size()};
}

}  // namespace

Status SpoolFile::reopen() {
  fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd_) return system_error("open " + path_, errno);
  return base::ok();
}

Expected<SpoolFile> SpoolFile::create(const std::string& folder, const std::string& execution) {
  SpoolFile file(folder + "/" + base::sha256(execution).substr(0, 32) + extension);
  const auto opened = file.reopen();
  if (!opened) return opened.error();
  if (::ftruncate(file.fd_.get(), 0) != 0) return system_error("truncate " + file.path_, errno);
  return file;
}

Expected<SpoolFile> SpoolFile::recover(const std::string& path) {
  SpoolFile file(path);
  const auto opened = file.reopen();
  if (!opened) return opened.error();
  while (true) {
    auto record = read_record(file.fd_.get(), file.size_, path);
    if (!record) {
      if (record.error().code == ErrorCode::io) return record.error();
      break;
    }
    // One execution a file, in order: anything else is damage from here on.
    const auto& header = record->batch.header;
    const auto next = file.batches_.empty() ? 0 : file.batches_.back().header.base + file.batches_.back().header.count;
    const bool follows = file.batches_.empty() || (header.execution == file.batches_.front().header.execution &&
                                                   !file.batches_.back().header.last);
    if (!follows || header.base != next) break;
    file.size_ = record->end;
    file.batches_.push_back(std::move(record->batch));
  }
  if (file.batches_.empty()) return Error{ErrorCode::protocol, path + " holds no whole record"};
  if (::ftruncate(file.fd_.get(), static_cast<off_t>(file.size_)) != 0) return system_error("truncate " + path, errno);
  return file;
}

Status SpoolFile::append(const protocols::BatchHeader& header, std::string_view chunk) {
  if (!fd_) {
    const auto opened = reopen();
    if (!opened) return opened;
  }
  const auto encoded = protocols::encode(header);
  Prefix prefix;
  prefix.header = static_cast<std::uint32_t>(encoded.size());
  prefix.chunk = static_cast<std::uint32_t>(chunk.size());
  prefix.check = check(encoded, chunk);
  std::string record(reinterpret_cast<const char*>(&prefix), sizeof prefix);
  record += encoded;
  record += chunk;
  // At an explicit offset: what a failed attempt (a full disk) left behind is overwritten by the next one.
  const auto written = base::write_at(fd_.get(), record, size_, path_);
  if (!written) return written;
  batches_.push_back({header, size_ + sizeof prefix + encoded.size(), prefix.chunk});
  size_ += record.size();
  return base::ok();
}

Expected<std::string> SpoolFile::read(const Batch& batch) const {
  if (batch.bytes == 0) return std::string();
  base::UniqueFd again;
  int fd = fd_.get();
  if (!fd_) {
    again.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!again) return system_error("open " + path_, errno);
    fd = again.get();
  }
  std::string chunk(batch.bytes, '\0');
  const auto got = base::read_at(fd, chunk.data(), chunk.size(), batch.offset, path_);
  if (!got) return got.error();
  if (!*got) return Error{ErrorCode::io, path_ + " became shorter than it was written"};
  return chunk;
}

void SpoolFile::remove() {
  fd_.reset();
  ::unlink(path_.c_str());
  batches_.clear();
  size_ = 0;
}

std::vector<std::string> spool_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() == extension) paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace leafcutter::node
