// The batches of one execution on disk, in order, until the coordinator has them. A process that is killed at any
// instant leaves whole records and at most one torn one, which recovery cuts off. Nothing is synced: records survive
// the death of this process, and a host that dies takes its leases with it, so their leaves are run again anyway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "protocols/stream.hpp"

namespace leafcutter::node {

class SpoolFile {
 public:
  struct Batch {
    protocols::BatchHeader header;
    std::uint64_t offset = 0;  ///< of the chunk in the file
    std::uint32_t bytes = 0;   ///< of the chunk
  };

  /// A new, empty spool for `execution` in `folder`.
  static base::Expected<SpoolFile> create(const std::string& folder, const std::string& execution);

  /// Reads back what a dead process left and cuts off a torn tail. Errors: io, protocol (no whole record).
  static base::Expected<SpoolFile> recover(const std::string& path);

  base::Status append(const protocols::BatchHeader& header, std::string_view chunk);
  base::Expected<std::string> read(const Batch& batch) const;

  /// An empty batch that is not on disk.
  void mark(const protocols::BatchHeader& header) { batches_.push_back({header, size_, 0}); }

  /// No more records follow: gives the descriptor back; reading opens the file again.
  void seal() { fd_.reset(); }
  void remove();

  const std::vector<Batch>& batches() const { return batches_; }
  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return size_; }

 private:
  explicit SpoolFile(std::string path) : path_(std::move(path)) {}
  base::Status reopen();

  std::string path_;
  base::UniqueFd fd_;
  std::uint64_t size_ = 0;
  std::vector<Batch> batches_;
};

/// The spool files in `folder`, sorted.
std::vector<std::string> spool_files(const std::string& folder);

}  // namespace leafcutter::node
