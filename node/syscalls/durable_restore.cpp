#include "node/syscalls/durable_restore.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {
namespace {

std::string below_folder(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

void note_path(std::vector<std::string>& list, const std::string& path) {
  if (list.size() < PowerLoss::listed) list.push_back(path);
}

std::string counted_paths(std::uint64_t count, const std::string& what, const std::vector<std::string>& paths) {
  if (count == 0) return "no " + what;
  auto out = std::to_string(count) + " " + what + " (";
  for (std::size_t i = 0; i < paths.size(); ++i) out += (i > 0 ? ", " : "") + paths[i];
  return out + (paths.size() < count ? ", ...)" : ")");
}

/// One restore. What lies in the wrong place is first moved into a folder of its own inside the data folder (a rename,
/// whatever its size) or removed; then the durable tree is built from its root, with what is there already.
class DurableRestore {
 public:
  explicit DurableRestore(const RestoreContext& context) : c_(context) {}

  base::Expected<PowerLoss> run();

 private:
  struct Task {
    NodeId folder;
    std::string name;
    NodeId child;
    std::string path;
  };

  base::Status evacuate();
  base::Status evacuate(const LiveEntry& entry, NodeId parent, bool durable_parent);
  base::Status stage(const LiveEntry& entry, NodeId id);
  base::Status remove(const LiveEntry& entry);
  base::Status build();
  base::Status place(const Task& task);
  base::Status create(NodeId id, const std::string& path);
  base::Status set_contents(NodeId id, const std::string& path);
  base::Status set_content_of(NodeId id, const std::string& path, const EntryStatus* live);
  base::Status set_modes();
  base::Status clear_stage();

  /// The durable folder of an entry, if its folder is one.
  std::optional<NodeId> parent_of(const LiveEntry& entry) const;
  bool reachable(NodeId id) const { return id == DurableTree::root || reachable_.contains(id); }
  void find_reachable();
  std::string staged(NodeId id) const { return stage_ + "/" + std::to_string(id); }
  base::Error refused(const std::string& what, const std::string& path) const {
    return base::system_error("after the power loss, " + what + " " + path, errno);
  }

  RestoreContext c_;
  PowerLoss out_;
  std::vector<LiveEntry> live_;
  std::map<NodeId, const EntryStatus*> survivors_;       ///< durable files that still exist, as they were
  std::set<NodeId> reachable_;                           ///< has a durable path
  std::set<std::pair<NodeId, std::string>> right_;       ///< names that lead where they should
  std::set<std::pair<NodeId, std::string>> live_names_;  ///< names that were taken, in durable folders
  std::set<NodeId> staged_, created_, has_inode_;
  std::map<NodeId, std::string> paths_;  ///< a path of each node that was placed
  std::set<std::string> changed_;
  std::string stage_;  ///< empty while there is none
};

void DurableRestore::find_reachable() {
  std::deque<NodeId> folders{DurableTree::root};
  for (; !folders.empty(); folders.pop_front())
    for (const auto& [name, child] : c_.tree.node(folders.front()).entries)
      if (reachable_.insert(child).second && c_.tree.node(child).status.kind == EntryKind::folder)
        folders.push_back(child);
}

std::optional<NodeId> DurableRestore::parent_of(const LiveEntry& entry) const {
  if (entry.parent < 0) return DurableTree::root;
  const auto id = c_.tree.find(live_[static_cast<std::size_t>(entry.parent)].status.key);
  if (!id || !reachable(*id)) return std::nullopt;
  return id;
}

base::Status DurableRestore::evacuate() {
  for (const auto& entry : live_) {
    const auto parent = parent_of(entry);
    if (!parent) continue;
    live_names_.emplace(*parent, entry.name);
    const auto id = c_.tree.find(entry.status.key);
    const auto& entries = c_.tree.node(*parent).entries;
    const auto durable = entries.find(entry.name);
    if (id && durable != entries.end() && durable->second == *id) {
      right_.emplace(*parent, entry.name);
      has_inode_.insert(*id);
    }
  }
  for (const auto& entry : live_)
    if (const auto id = c_.tree.find(entry.status.key); id && reachable(*id)) survivors_.emplace(*id, &entry.status);
  // A folder after what is in it: by then nothing is left in one that goes.
  for (auto at = live_.rbegin(); at != live_.rend(); ++at) {
    const auto& entry = *at;
    const auto parent = parent_of(entry);
    if (parent && right_.contains({*parent, entry.name})) continue;
    if (auto moved = evacuate(entry, parent.value_or(DurableTree::root), parent.has_value()); !moved) return moved;
  }
  return base::ok();
}

base::Status DurableRestore::evacuate(const LiveEntry& entry, NodeId parent, bool durable_parent) {
  const auto wanted = durable_parent && c_.tree.node(parent).entries.contains(entry.name);
  if (entry.status.kind == EntryKind::other && durable_parent && !wanted) return base::ok();
  if (!wanted) {
    ++out_.names_lost;
    note_path(out_.lost, entry.path);
  }
  const auto id = c_.tree.find(entry.status.key);
  return id && reachable(*id) ? stage(entry, *id) : remove(entry);
}

base::Status DurableRestore::stage(const LiveEntry& entry, NodeId id) {
  // Of a hard link one name is enough, and renaming one over another would do nothing.
  if (has_inode_.contains(id)) {
    if (::unlinkat(c_.data_folder, entry.path.c_str(), 0) != 0) return refused("remove", entry.path);
    return base::ok();
  }
  if (stage_.empty()) {
    for (int attempt = 0;; ++attempt) {
      const auto name = ".power-loss-" + std::to_string(attempt);
      if (c_.tree.node(DurableTree::root).entries.contains(name)) continue;
      if (::mkdirat(c_.data_folder, name.c_str(), 0700) == 0) {
        stage_ = name;
        break;
      }
      if (errno != EEXIST || attempt > 1000) return refused("create", name);
    }
  }
  if (::renameat(c_.data_folder, entry.path.c_str(), c_.data_folder, staged(id).c_str()) != 0)
    return refused("move", entry.path);
  staged_.insert(id);
  has_inode_.insert(id);
  return base::ok();
}

base::Status DurableRestore::remove(const LiveEntry& entry) {
  if (entry.status.links <= 1) out_.bytes_lost += entry.status.size;
  const auto how = entry.status.kind == EntryKind::folder ? AT_REMOVEDIR : 0;
  if (::unlinkat(c_.data_folder, entry.path.c_str(), how) == 0) return base::ok();
  // What is mounted here is not ours and cannot be removed as a file; its own error is the one to report.
  if (errno == EISDIR && ::unlinkat(c_.data_folder, entry.path.c_str(), AT_REMOVEDIR) == 0) return base::ok();
  return refused("remove", entry.path);
}

base::Status DurableRestore::create(NodeId id, const std::string& path) {
  const auto& status = c_.tree.node(id).status;
  base::UniqueFd made;
  if (status.kind == EntryKind::folder) {
    if (::mkdirat(c_.data_folder, path.c_str(), 0700) != 0) return refused("create", path);
  } else if (status.kind == EntryKind::link) {
    if (::symlinkat(status.target.c_str(), c_.data_folder, path.c_str()) != 0) return refused("create", path);
  } else {
    made.reset(::openat(c_.data_folder, path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!made) return refused("create", path);
  }
  const base::UniqueFd seen(::openat(c_.data_folder, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!seen) return refused("open", path);
  const auto now = status_of(seen.get(), c_.device);
  if (!now) return now.error();
  c_.tree.rebind(id, now->key);
  created_.insert(id);
  has_inode_.insert(id);
  return base::ok();
}

base::Status DurableRestore::place(const Task& task) {
  if (!right_.contains({task.folder, task.name})) {
    if (staged_.erase(task.child) > 0) {
      if (::renameat(c_.data_folder, staged(task.child).c_str(), c_.data_folder, task.path.c_str()) != 0)
        return refused("move back", task.path);
    } else if (has_inode_.contains(task.child)) {
      const auto& other = paths_.at(task.child);
      if (::linkat(c_.data_folder, other.c_str(), c_.data_folder, task.path.c_str(), 0) != 0)
        return refused("link", task.path);
    } else if (auto made = create(task.child, task.path); !made) {
      return made;
    }
    if (live_names_.contains({task.folder, task.name})) {
      changed_.insert(task.path);
    } else {
      ++out_.names_returned;
      note_path(out_.returned, task.path);
    }
  }
  paths_.emplace(task.child, task.path);
  return base::ok();
}

base::Status DurableRestore::build() {
  std::deque<Task> later;  // further names of a file whose first is not yet in its place
  std::deque<std::pair<NodeId, std::string>> folders{{DurableTree::root, ""}};
  for (; !folders.empty(); folders.pop_front()) {
    const auto [folder, path] = folders.front();
    for (const auto& [name, child] : c_.tree.node(folder).entries) {
      const Task task{folder, name, child, below_folder(path, name)};
      const auto needs_link = !right_.contains({folder, name}) && !staged_.contains(child) &&
                              has_inode_.contains(child) && !paths_.contains(child);
      if (needs_link) {
        later.push_back(task);
        continue;
      }
      if (auto placed = place(task); !placed) return placed;
      if (c_.tree.node(child).status.kind == EntryKind::folder) folders.emplace_back(child, task.path);
    }
  }
  for (const auto& task : later)
    if (auto placed = place(task); !placed) return placed;
  return base::ok();
}

base::Status DurableRestore::set_content_of(NodeId id, const std::string& path, const EntryStatus* live) {
  const auto size = c_.tree.node(id).status.size;
  const base::UniqueFd file(::openat(c_.data_folder, path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return refused("open", path);
  base::UniqueFd copy(::openat(c_.image_folder, durable_copy_name(id).c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy && errno != ENOENT) return refused("open the durable copy of", path);
  struct stat now {};
  if (::fstat(file.get(), &now) != 0) return refused("look at", path);
  if (now.st_size != static_cast<off_t>(size) && ::ftruncate(file.get(), static_cast<off_t>(size)) != 0)
    return refused("set the size of", path);
  std::uint64_t changed = 0;
  if (copy) {
    const auto copied =
        c_.copier.copy_changed({.from = copy.get(), .to = file.get(), .clean = -1, .begin = 0, .end = size});
    if (!copied) return copied.error();
    changed = *copied;
  }
  if (live == nullptr) return base::ok();
  if (live->size > size) out_.bytes_lost += live->size - size;
  out_.bytes_lost += std::min(changed, live->size);
  if (changed > 0 || live->size != size) changed_.insert(path);
  return base::ok();
}

base::Status DurableRestore::set_contents(NodeId id, const std::string& path) {
  auto& node = c_.tree.node(id);
  const auto survivor = survivors_.find(id);
  const auto* live = survivor == survivors_.end() ? nullptr : survivor->second;
  if (node.in_place) {
    const auto untouched = live != nullptr && live->size == node.status.size && live->changed == node.status.changed;
    if (!untouched) note_path(out_.unannounced, path);
    if (live == nullptr) {
      node.in_place = false;
      node.status.size = 0;
    } else {
      node.status.size = live->size;
      node.status.changed = live->changed;
    }
    return base::ok();
  }
  return set_content_of(id, path, live);
}

base::Status DurableRestore::set_modes() {
  // Deepest first: a folder may lose the permission to enter it.
  std::vector<std::pair<std::string, NodeId>> placed;
  for (const auto& [id, path] : paths_)
    if (c_.tree.node(id).status.kind != EntryKind::link) placed.emplace_back(path, id);
  std::ranges::sort(placed, std::greater());
  for (const auto& [path, id] : placed) {
    const auto mode = c_.tree.node(id).status.mode;
    const auto survivor = survivors_.find(id);
    if (survivor != survivors_.end() && survivor->second->mode == mode) continue;
    if (::fchmodat(c_.data_folder, path.c_str(), mode, 0) != 0) return refused("set the permissions of", path);
    if (survivor == survivors_.end()) continue;
    changed_.insert(path);
  }
  struct stat now {};
  const auto mode = c_.tree.node(DurableTree::root).status.mode;
  if (::fstat(c_.data_folder, &now) != 0) return refused("look at", "the data folder");
  if ((now.st_mode & 07777) != mode && ::fchmod(c_.data_folder, mode) != 0)
    return refused("set the permissions of", "the data folder");
  return base::ok();
}

base::Status DurableRestore::clear_stage() {
  if (stage_.empty()) return base::ok();
  if (::unlinkat(c_.data_folder, stage_.c_str(), AT_REMOVEDIR) != 0) return refused("remove", stage_);
  return base::ok();
}

base::Expected<PowerLoss> DurableRestore::run() {
  auto live = LiveFolder(c_.data_folder, c_.device).all();
  if (!live) return live.error();
  live_ = std::move(*live);
  find_reachable();
  if (auto moved = evacuate(); !moved) return moved.error();
  if (auto built = build(); !built) return built.error();
  for (const auto& [id, path] : paths_)
    if (c_.tree.node(id).status.kind == EntryKind::file)
      if (auto set = set_contents(id, path); !set) return set.error();
  if (auto set = set_modes(); !set) return set.error();
  if (auto cleared = clear_stage(); !cleared) return cleared.error();
  out_.files_changed = changed_.size();
  for (const auto& path : changed_) note_path(out_.changed, path);
  return std::move(out_);
}

}  // namespace

std::string durable_copy_name(NodeId id) { return std::to_string(id); }
std::string clean_copy_name(NodeId id) { return std::to_string(id) + ".clean"; }

std::string PowerLoss::text() const {
  auto out = counted_paths(files_changed, files_changed == 1 ? "file changed" : "files changed", changed) + ", " +
             counted_paths(names_lost, names_lost == 1 ? "name lost" : "names lost", lost) + ", " +
             counted_paths(names_returned, "returned", returned) + ", " + std::to_string(bytes_lost) + " bytes lost";
  if (lies > 0) out += ", " + std::to_string(lies) + (lies == 1 ? " sync had no effect" : " syncs had no effect");
  if (syncs_failed > 0)
    out += ", " + std::to_string(syncs_failed) + (syncs_failed == 1 ? " sync" : " syncs") + " failed";
  if (!unannounced.empty()) out += "; not announced: " + base::join_names(unannounced);
  return out;
}

base::Expected<PowerLoss> restore_durable(const RestoreContext& context) { return DurableRestore(context).run(); }

}  // namespace leafcutter::node
