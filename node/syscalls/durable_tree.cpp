#include "node/syscalls/durable_tree.hpp"

#include <algorithm>

namespace leafcutter::node {
namespace {

bool durable_kind(EntryKind kind) { return kind != EntryKind::other; }

}  // namespace

DurableTree::DurableTree(const EntryStatus& folder) {
  nodes_[root].status = folder;
  ids_[folder.key] = root;
}

std::optional<NodeId> DurableTree::find(const InodeKey& key) const {
  const auto found = ids_.find(key);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

NodeId DurableTree::learn(const EntryStatus& status) {
  const auto [found, fresh] = ids_.try_emplace(status.key, next_);
  if (!fresh) return found->second;
  auto& made = nodes_[next_];
  made.status = status;
  made.status.size = 0;
  return next_++;
}

NodeId DurableTree::add(NodeId folder, const std::string& name, const EntryStatus& status) {
  const auto id = learn(status);
  nodes_.at(id).status.size = status.size;
  set_entry(folder, name, id);
  to_review_.clear();  // nothing is stale at the start: a second name is a hard link
  return id;
}

void DurableTree::set_entry(NodeId folder, const std::string& name, NodeId child) {
  auto& entries = nodes_.at(folder).entries;
  const auto found = entries.find(name);
  if (found != entries.end()) {
    if (found->second == child) return;
    remove_entry(folder, name);
  }
  entries[name] = child;
  auto& names = nodes_.at(child).names;
  names.emplace(folder, name);
  if (names.size() > 1) to_review_.insert(child);
}

void DurableTree::remove_entry(NodeId folder, const std::string& name) {
  auto& entries = nodes_.at(folder).entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return;
  nodes_.at(found->second).names.erase({folder, name});
  to_review_.insert(found->second);
  entries.erase(found);
}

void DurableTree::lay(const LivePath& path) {
  auto folder = root;
  for (const auto& step : path) {
    if (!durable_kind(step.status.kind)) return;
    const auto child = learn(step.status);
    set_entry(folder, step.name, child);
    folder = child;
  }
}

void DurableTree::drop_stale_names(NodeId id, const std::vector<LivePath>& paths) {
  std::set<std::pair<NodeId, std::string>> live;
  for (const auto& path : paths) {
    const auto folder = path.size() > 1 ? find(path[path.size() - 2].status.key) : std::optional(root);
    if (folder) live.emplace(*folder, path.back().name);
  }
  const auto names = nodes_.at(id).names;
  for (const auto& name : names)
    if (!live.contains(name)) remove_entry(name.first, name.second);
}

void DurableTree::forget(NodeId id) {
  const auto entries = nodes_.at(id).entries;
  for (const auto& [name, child] : entries) remove_entry(id, name);
  release_key(id);
  nodes_.erase(id);
  forgotten_.push_back(id);
}

base::Status DurableTree::review_all(const Paths& paths) {
  // Each round settles a node as the folder is now; only a folder that changes under our eyes can need more.
  const auto limit = 8 * nodes_.size() + 64;
  for (std::size_t round = 0; !to_review_.empty(); ++round) {
    if (round > limit) {
      to_review_.clear();
      return base::Error{base::ErrorCode::internal, "the durable names do not settle", {}};
    }
    const auto id = *to_review_.begin();
    to_review_.erase(to_review_.begin());
    if (id == root || !nodes_.contains(id)) continue;
    const auto live = paths(nodes_.at(id).status.key);
    if (!live) return live.error();
    drop_stale_names(id, *live);
    if (nodes_.at(id).names.empty()) {
      for (const auto& path : *live) lay(path);
      if (live->empty()) forget(id);
    }
    to_review_.erase(id);
  }
  return base::ok();
}

base::Status DurableTree::names_synced(NodeId id, const Paths& paths) {
  if (id == root) return base::ok();
  const auto live = paths(nodes_.at(id).status.key);
  if (!live) return live.error();
  const auto named = !nodes_.at(id).names.empty();
  for (const auto& path : *live) lay(path);
  // A file that never had a name (O_TMPFILE) may still be given one.
  if (named) to_review_.insert(id);
  return review_all(paths);
}

base::Status DurableTree::entries_synced(NodeId folder, const std::vector<LiveStep>& entries, const Paths& paths) {
  std::set<std::string> live;
  for (const auto& entry : entries) {
    if (!durable_kind(entry.status.kind)) continue;
    live.insert(entry.name);
    set_entry(folder, entry.name, learn(entry.status));
  }
  const auto durable = nodes_.at(folder).entries;
  for (const auto& [name, child] : durable)
    if (!live.contains(name)) remove_entry(folder, name);
  return review_all(paths);
}

void DurableTree::rebind(NodeId id, const InodeKey& key) {
  release_key(id);
  nodes_.at(id).status.key = key;
  ids_[key] = id;
}

void DurableTree::release_key(NodeId id) {
  // Where files have no time of birth, another one may have taken the number over.
  const auto found = ids_.find(nodes_.at(id).status.key);
  if (found != ids_.end() && found->second == id) ids_.erase(found);
}

std::size_t DurableTree::unnamed() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes_, [](const auto& entry) { return entry.first != root && entry.second.names.empty(); }));
}

void DurableTree::forget_oldest_unnamed() {
  for (const auto& [id, node] : nodes_) {
    if (id == root || !node.names.empty()) continue;
    forget(id);
    return;
  }
}

void DurableTree::forget_unnamed() {
  // What was in a forgotten folder is unnamed in turn; every round removes at least one node.
  for (std::vector<NodeId> unnamed;; unnamed.clear()) {
    for (const auto& [id, node] : nodes_)
      if (id != root && node.names.empty()) unnamed.push_back(id);
    if (unnamed.empty()) break;
    for (const auto id : unnamed) forget(id);
  }
  to_review_.clear();
}

}  // namespace leafcutter::node
