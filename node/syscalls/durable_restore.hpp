// Carries out a power loss: makes a data folder, in place, what its durable tree and the copies in the image say.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/syscalls/durable_pages.hpp"
#include "node/syscalls/durable_tree.hpp"

namespace leafcutter::node {

/// What a power loss did, as evidence. Paths are relative to the data folder; of each list the first `listed` are kept.
struct PowerLoss {
  static constexpr std::size_t listed = 16;

  std::uint64_t files_changed = 0;   ///< whose bytes, size or permissions were set back, or that are another file again
  std::uint64_t names_lost = 0;      ///< entries that are gone, those inside a lost folder counted too
  std::uint64_t names_returned = 0;  ///< entries that are back; a folder that was renamed counts as one
  /// In pages that were set back, in ends cut off, and in files that are gone.
  std::uint64_t bytes_lost = 0;
  std::uint64_t lies = 0;          ///< syncs answered without effect since the loss before
  std::uint64_t syncs_failed = 0;  ///< syncs that failed and lost their pages, since then
  std::vector<std::string> changed, lost, returned;
  /// With Capture::before_change: files that changed, or went, without an announcement, and whose old bytes are
  /// therefore not known. Any entry means that the folder is not what a power loss would have left.
  std::vector<std::string> unannounced;

  bool changed_anything() const { return files_changed + names_lost + names_returned > 0; }
  /// "1 file changed (a), 2 names lost (b, c), none returned, 8192 bytes lost".
  std::string text() const;
};

/// What a restore works on. The descriptors stay open for as long as it runs.
struct RestoreContext {
  int data_folder;
  int image_folder;
  dev_t device;
  DurableTree& tree;
  PageCopier& copier;
};

/// Nobody else may use the folder meanwhile. Afterwards the tree's files are those of the folder again, by inode.
/// Errors: io; the folder is then in an undefined state, and the leaf is lost.
base::Expected<PowerLoss> restore_durable(const RestoreContext& context);

/// Name of a file's durable copy in the image folder, which is missing while the file has no bytes.
std::string durable_copy_name(NodeId id);
/// Name of the copy of what is clean, after a failed sync.
std::string clean_copy_name(NodeId id);

}  // namespace leafcutter::node
