// A data folder as it is at this moment: what an entry is, which paths lead to a file, everything in it. Nothing is
// kept from one look to the next, since the service goes on changing the folder.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

/// A file for as long as it exists, under whatever names. File systems give the number of a removed file to a new one;
/// the time of birth (statx, STATX_BTIME) tells the two apart. Where there is none (an old kernel's tmpfs) it is 0.
struct InodeKey {
  std::uint64_t number = 0;
  std::int64_t born_seconds = 0;
  std::uint32_t born_nanoseconds = 0;
  auto operator<=>(const InodeKey&) const = default;
};

enum class EntryKind {
  file,
  folder,
  link,   ///< a symbolic one
  other,  ///< FIFOs, sockets, devices, and what is mounted inside
};

struct EntryStatus {
  InodeKey key;
  EntryKind kind = EntryKind::other;
  mode_t mode = 0;           ///< permissions only
  std::string target;        ///< of a symbolic link
  std::uint64_t size = 0;    ///< bytes; of files
  std::uint64_t links = 0;   ///< names
  std::int64_t changed = 0;  ///< mtime in nanoseconds
};

/// One name on the way from the data folder to a file.
struct LiveStep {
  std::string name;
  EntryStatus status;
};
/// From the first name below the data folder to the file's own; empty for the data folder itself.
using LivePath = std::vector<LiveStep>;

/// An entry of all(); `parent` is the place of its folder in the list, -1 for the data folder.
struct LiveEntry {
  std::string path;
  std::string name;
  int parent = -1;
  EntryStatus status;
};

/// What an open descriptor is. Errors: io.
base::Expected<EntryStatus> status_of(int fd, dev_t device);

class LiveFolder {
 public:
  static constexpr std::size_t max_entries = 1'000'000;  ///< more are refused, not looked at in part

  /// `root` stays open for as long as this lives. Entries on another device than `device` are EntryKind::other.
  LiveFolder(int root, dev_t device) : root_(root), device_(device) {}

  /// The folder at `path` (relative; empty for the data folder), in the order of names.
  base::Expected<std::vector<LiveStep>> entries(const std::string& path) const;

  /// The way to `path`; nothing when it is not there or leads through a symbolic link.
  base::Expected<std::optional<LivePath>> way_to(const std::string& path) const;

  /// Every path to a file. The first question that needs it reads all folders (names only, no status).
  base::Expected<std::vector<LivePath>> paths_to(const InodeKey& key);

  /// Spares paths_to() the search: `path` is the only one to its last file.
  void know_only_path(const LivePath& path);

  /// Everything, a folder before what is in it.
  base::Expected<std::vector<LiveEntry>> all() const;

 private:
  struct Place {
    int folder;  ///< in folders_, -1 for the data folder
    std::string name;
  };
  struct Folder {
    int parent;
    std::string name;
  };

  base::Status read_all_names();
  std::string path_of(int folder) const;

  int root_;
  dev_t device_;
  std::optional<LivePath> known_;
  bool read_ = false;
  std::vector<Folder> folders_;
  std::unordered_multimap<std::uint64_t, Place> places_;  ///< by inode number; never iterated
};

}  // namespace leafcutter::node
