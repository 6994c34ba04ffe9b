// Bytes between a file and its durable copy, page by page: only pages that differ are written, holes stay holes, and
// nothing but two buffers is held in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/error.hpp"

namespace leafcutter::node {

/// The unit in which content becomes durable or is lost: what the page cache of x86-64 and most others has.
inline constexpr std::uint64_t durable_page_bytes = 4096;

class PageCopier {
 public:
  /// Allocates its buffers (768 KiB, touched as they are used).
  PageCopier();

  struct Job {
    int from = -1;
    int to = -1;
    /// What is known to be clean, or -1: then only pages that differ from it are dirty, and it is brought up to `from`.
    int clean = -1;
    std::uint64_t begin = 0;  ///< bytes; a multiple of the page size
    std::uint64_t end = 0;    ///< no byte from here on is touched
    bool only_count = false;  ///< nothing is written; `to` may be -1, a file without bytes
  };

  /// Makes the dirty pages of `to` those of `from`, whose missing bytes count as zeros. The descriptors' offsets are
  /// changed. Returns the bytes in pages that were written (that would be, with `only_count`). Errors: io.
  base::Expected<std::uint64_t> copy_changed(const Job& job);

  /// Makes `to`, which is empty, what `from` is. Errors: io.
  base::Status copy_whole(int from, int to, std::uint64_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)
  };
  using Buffer = std::unique_ptr<std::byte, Free>;

  base::Expected<std::uint64_t> copy_chunk(const Job& job, std::uint64_t at, std::size_t bytes);
  base::Status put(const Job& job, std::uint64_t at, const std::byte* page, std::size_t bytes);

  Buffer from_, to_, clean_;
};

}  // namespace leafcutter::node
