#include "node/syscalls/durable_pages.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

namespace leafcutter::node {
namespace {

constexpr std::size_t durable_chunk_bytes =
    std::size_t{256} * 1024;  ///< two of them fit the second-level cache, so each byte is read once
constexpr std::uint64_t no_more_data = std::numeric_limits<std::uint64_t>::max();

/// Where the next bytes that are not a hole begin, or `at` where the file system does not say.
std::uint64_t next_data_in(int fd, std::uint64_t at) {
  if (fd < 0) return no_more_data;
  const auto found = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (found >= 0) return static_cast<std::uint64_t>(found);
  return errno == ENXIO ? no_more_data : at;
}

/// Fills the buffer, with zeros from the end of the file on.
base::Status read_for_copy(int fd, std::byte* into, std::size_t bytes, std::uint64_t at) {
  std::size_t done = 0;
  while (fd >= 0 && done < bytes) {
    const auto got = ::pread(fd, into + done, bytes - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error("read a file for its durable copy", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  std::memset(into + done, 0, bytes - done);
  return base::ok();
}

base::Status write_copy(int fd, const std::byte* bytes, std::size_t count, std::uint64_t at) {
  std::size_t done = 0;
  while (done < count) {
    const auto put = ::pwrite(fd, bytes + done, count - done, static_cast<off_t>(at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return base::system_error("write a durable copy", errno);
    done += static_cast<std::size_t>(put);
  }
  return base::ok();
}

bool zero_bytes_only(const std::byte* bytes, std::size_t count) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, count - 1) == 0;
}

}  // namespace

PageCopier::PageCopier() {
  for (auto* buffer : {&from_, &to_, &clean_}) {
    buffer->reset(static_cast<std::byte*>(std::aligned_alloc(durable_page_bytes, durable_chunk_bytes)));
    if (!*buffer) throw std::bad_alloc();
  }
}

base::Status PageCopier::put(const Job& job, std::uint64_t at, const std::byte* page, std::size_t bytes) {
  const auto zero = zero_bytes_only(page, bytes);
  for (const auto fd : {job.to, job.clean}) {
    if (fd < 0) continue;
    if (zero && ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                            static_cast<off_t>(bytes)) == 0)
      continue;
    if (auto written = write_copy(fd, page, bytes, at); !written) return written;
  }
  return base::ok();
}

base::Expected<std::uint64_t> PageCopier::copy_chunk(const Job& job, std::uint64_t at, std::size_t bytes) {
  if (auto read = read_for_copy(job.from, from_.get(), bytes, at); !read) return read.error();
  const auto compared = job.clean >= 0 ? job.clean : job.to;
  const auto& known = job.clean >= 0 ? clean_ : to_;
  if (auto read = read_for_copy(compared, known.get(), bytes, at); !read) return read.error();
  std::uint64_t changed = 0;
  if (std::memcmp(from_.get(), known.get(), bytes) == 0) return changed;
  for (std::size_t page = 0; page < bytes; page += durable_page_bytes) {
    const auto here = std::min<std::size_t>(durable_page_bytes, bytes - page);
    if (std::memcmp(from_.get() + page, known.get() + page, here) == 0) continue;
    if (!job.only_count)
      if (auto written = put(job, at + page, from_.get() + page, here); !written) return written.error();
    changed += here;
  }
  return changed;
}

base::Expected<std::uint64_t> PageCopier::copy_changed(const Job& job) {
  std::uint64_t changed = 0;
  for (auto at = job.begin; at < job.end;) {
    const auto data = std::min({next_data_in(job.from, at), next_data_in(job.to, at), next_data_in(job.clean, at)});
    if (data >= job.end) break;
    at = std::max(at, data / durable_page_bytes * durable_page_bytes);
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(durable_chunk_bytes, job.end - at));
    const auto here = copy_chunk(job, at, bytes);
    if (!here) return here.error();
    changed += *here;
    at += bytes;
  }
  return changed;
}

base::Status PageCopier::copy_whole(int from, int to, std::uint64_t bytes) {
  if (::ftruncate(to, static_cast<off_t>(bytes)) != 0)
    return base::system_error("set the size of a durable copy", errno);
  for (std::uint64_t at = 0; at < bytes;) {
    const auto data = next_data_in(from, at);
    if (data >= bytes) break;
    at = std::max(at, data / durable_page_bytes * durable_page_bytes);
    // Not beyond the data: what follows it may be a hole of any size.
    const auto hole = ::lseek(from, static_cast<off_t>(at), SEEK_HOLE);
    const auto until = hole > static_cast<off_t>(at) ? std::min(bytes, static_cast<std::uint64_t>(hole)) : bytes;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(durable_chunk_bytes, until - at));
    if (auto read = read_for_copy(from, from_.get(), count, at); !read) return read;
    if (auto written = write_copy(to, from_.get(), count, at); !written) return written;
    at += count;
  }
  return base::ok();
}

}  // namespace leafcutter::node
