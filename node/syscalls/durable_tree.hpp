// Which names, in which folders, lead to which files after a power loss: the part of the durable image that is a value.
// It knows nothing of bytes or descriptors; what the folder looks like now is asked of the caller.
//
// The rules are those that ext4, xfs and btrfs have in common, each change of a folder being one step of their log:
// a synced file has the names it bears now, and no others; a synced folder has the entries it has now; and a file that
// thereby loses its last durable name while it lives on under another (it was renamed) keeps that other one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node/syscalls/live_folder.hpp"

namespace leafcutter::node {

using NodeId = std::uint32_t;

struct DurableNode {
  EntryStatus status;                              ///< of a file, `size` is the durable one
  std::map<std::string, NodeId> entries;           ///< of a folder
  std::set<std::pair<NodeId, std::string>> names;  ///< folder and name; several for hard links, none while unnamed
  bool in_place = false;   ///< a file's bytes were never copied: those in the data folder are the durable ones
  bool has_clean = false;  ///< a sync failed: there is a copy of what the page cache holds to be clean
};

class DurableTree {
 public:
  static constexpr NodeId root = 0;
  /// Every path that leads to the file now.
  using Paths = std::function<base::Expected<std::vector<LivePath>>(const InodeKey&)>;

  explicit DurableTree(const EntryStatus& folder);

  std::optional<NodeId> find(const InodeKey& key) const;
  DurableNode& node(NodeId id) { return nodes_.at(id); }
  const DurableNode& node(NodeId id) const { return nodes_.at(id); }
  const std::map<NodeId, DurableNode>& nodes() const { return nodes_; }

  /// The node of a file, made when it is new: a file without bytes, a folder without entries, a link, and no name.
  NodeId learn(const EntryStatus& status);

  /// Everything as it is: what the folder holds at the start.
  NodeId add(NodeId folder, const std::string& name, const EntryStatus& status);

  /// The names of a synced file or folder.
  base::Status names_synced(NodeId id, const Paths& paths);

  /// The entries of a synced folder; its own names are names_synced().
  base::Status entries_synced(NodeId folder, const std::vector<LiveStep>& entries, const Paths& paths);

  /// After a restore gave the file another inode.
  void rebind(NodeId id, const InodeKey& key);

  /// Removes what has no name; the data folder itself stays.
  void forget_unnamed();
  std::size_t unnamed() const;
  void forget_oldest_unnamed();

  /// Nodes that are no more: their bytes may go.
  std::vector<NodeId> take_forgotten() { return std::exchange(forgotten_, {}); }

 private:
  void set_entry(NodeId folder, const std::string& name, NodeId child);
  void remove_entry(NodeId folder, const std::string& name);
  void lay(const LivePath& path);
  void drop_stale_names(NodeId id, const std::vector<LivePath>& paths);
  void forget(NodeId id);
  void release_key(NodeId id);
  base::Status review_all(const Paths& paths);

  std::map<NodeId, DurableNode> nodes_;
  std::map<InodeKey, NodeId> ids_;
  NodeId next_ = root + 1;
  std::set<NodeId> to_review_;  ///< whose names changed
  std::vector<NodeId> forgotten_;
};

}  // namespace leafcutter::node
