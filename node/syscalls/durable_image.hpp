// What a power loss would leave of a service's data folder: "what was not durably synced is gone after the next crash
// and restart". The image is told of every sync that took effect, lied or failed, keeps a copy of each file's durable
// bytes, and makes the folder what a power loss would have left of it. docs/durability.md has the model and its limits;
// the rules are those of ext4, xfs and btrfs as far as the three agree.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/syscalls/durable_pages.hpp"
#include "node/syscalls/durable_restore.hpp"
#include "node/syscalls/durable_tree.hpp"
#include "node/syscalls/live_folder.hpp"

namespace leafcutter::node {

/// A file as a caller names it: a descriptor of ours for it (of any mode; its offset and flags are left alone), or a
/// path, relative to the data folder or absolute below it. Symbolic links are followed.
class DataFile {
 public:
  DataFile(int fd) : name_(fd) {}                              // NOLINT(google-explicit-constructor)
  DataFile(std::string path) : name_(std::move(path)) {}       // NOLINT(google-explicit-constructor)
  DataFile(const char* path) : DataFile(std::string(path)) {}  // NOLINT(google-explicit-constructor)

  const std::variant<int, std::string>& name() const { return name_; }

 private:
  std::variant<int, std::string> name_;
};

/// Used by one thread. Costs grow with the size of the file that is synced and, when names changed, with the number of
/// entries in the folder; memory with the number of entries (some 550 bytes each). Files outside the data folder
/// are let pass without effect. Errors: io, above all ENOENT for a path and ENOSPC for the image, and unavailable
/// (more than LiveFolder::max_entries entries). After an error the image is behind the truth: the leaf is lost.
class DurableImage {
 public:
  /// When the bytes that are there at the start are copied.
  enum class Capture {
    at_start,       ///< at once: costs what copying the folder costs, and asks nothing of the caller
    before_change,  ///< about_to_change() is called before every call that could change or remove a file's bytes
  };

  /// Files without a name (O_TMPFILE, removed while open) whose durable bytes are kept; the oldest are let go.
  static constexpr std::size_t max_unnamed = 256;

  /// Everything in the data folder is durable. `image_folder` is made if it is missing, and must be empty and not
  /// inside the data folder; its owner removes it. Errors: bad_input, io, unavailable.
  static base::Expected<DurableImage> create(const std::string& data_folder, const std::string& image_folder,
                                             Capture capture = Capture::at_start);

  /// Copies the bytes of a file that is durable and was not copied yet. With Capture::before_change it must be called,
  /// while the call waits, for: open for writing or with O_TRUNC; truncate by path; unlink; rename over a file (the one
  /// that is replaced). No other call can change a file's bytes. A path that is not there is no error.
  base::Status about_to_change(const DataFile& file);

  /// fsync, or with `data_only` fdatasync, that took effect. A file: its bytes, size, permissions (not with
  /// `data_only`) and names (with `data_only` only if it has no durable one). A folder: its entries and its own names.
  base::Status synced(const DataFile& file, bool data_only = false);

  /// sync_file_range that waited for the writing: pages of the range that lie below the durable size. No metadata: the
  /// size and the names stay as they were.
  base::Status synced_range(const DataFile& file, std::uint64_t offset, std::uint64_t length);

  /// A write through O_SYNC or O_DSYNC (`data_only`), and msync(MS_SYNC) of a mapped file (`data_only`, the range of
  /// the file that is mapped there): the pages of the range, and size and names as with synced().
  base::Status written(const DataFile& file, std::uint64_t offset, std::uint64_t length, bool data_only);

  /// sync and syncfs: everything that has a name.
  base::Status synced_all();

  /// A sync that was answered with success and did nothing.
  void lied(const DataFile& file);

  /// A sync that failed and lost the pages: those that are dirty now count as clean from here on. Returns the bytes in
  /// them, told apart by content.
  base::Expected<std::uint64_t> sync_failed(const DataFile& file);

  /// Only when nobody has a file of the folder open any more. Afterwards everything in it is durable.
  base::Expected<PowerLoss> power_loss();

 private:
  struct Opened {
    base::UniqueFd fd;  ///< a description of our own, for reading
    EntryStatus status;
    std::string hint;  ///< path where it may be found, not to be believed; empty: none
  };
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  DurableImage(base::UniqueFd data, base::UniqueFd image, const EntryStatus& root, dev_t device,
               std::string data_folder);

  base::Status take_in(Capture capture);
  base::Status capture(NodeId id, int file, std::uint64_t bytes);
  base::Expected<Opened> open(const DataFile& file) const;
  base::Expected<Opened> open_path(const std::string& path) const;
  base::Expected<Opened> open_again(int fd) const;
  /// The node of a file of ours, made if need be; nothing when it is none of ours.
  base::Expected<std::optional<NodeId>> node_of(const Opened& file, LiveFolder& live);
  base::Expected<bool> ours(const Opened& file, LiveFolder& live) const;
  base::Expected<bool> names_are_settled(NodeId id, const EntryStatus& status, const LiveFolder& live) const;
  std::string durable_path(NodeId id) const;
  base::Status sync_file(const DataFile& file, const Range* range, bool data_only);
  base::Status sync_names(NodeId id, const EntryStatus& status, bool data_only, LiveFolder& live);
  base::Status sync_entries(NodeId id, LiveFolder& live);
  base::Status sync_content(NodeId id, const Opened& file, const Range* range);
  base::Status sync_pages(NodeId id, const Opened& file, Range range, bool with_size);
  base::Expected<base::UniqueFd> image_file(const std::string& name, int flags) const;
  void let_go();

  base::UniqueFd data_, image_;
  dev_t device_;
  std::string data_folder_;  ///< as given
  DurableTree tree_;
  PageCopier copier_;
  std::uint64_t lies_ = 0, failures_ = 0;
  std::vector<std::string> announced_late_;  ///< one for each file at most: it is copied then
};

}  // namespace leafcutter::node
