#include "node/syscalls/durable_image.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "node/syscalls/resource.hpp"

namespace leafcutter::node {
namespace {

std::string own_descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// Path of an open descriptor as this process sees it; empty where there is none.
std::string descriptor_path(int fd) {
  char name[PATH_MAX];
  const auto length = ::readlink(own_descriptor_path(fd).c_str(), name, sizeof name);
  return length < 0 ? std::string() : std::string(name, static_cast<std::size_t>(length));
}

std::uint64_t durable_page_begin(std::uint64_t offset) { return offset / durable_page_bytes * durable_page_bytes; }

std::uint64_t durable_page_end(std::uint64_t offset) {
  const auto begin = durable_page_begin(offset);
  if (begin == offset) return offset;
  return begin > std::numeric_limits<std::uint64_t>::max() - durable_page_bytes ? begin : begin + durable_page_bytes;
}

base::Error bad_image_folder(const std::string& folder, const std::string& found) {
  return {base::ErrorCode::bad_input,
          "image folder " + folder + " " + found + "; an empty folder outside the data folder would do",
          {}};
}

base::Expected<base::UniqueFd> open_data_folder(const std::string& path) {
  base::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) return folder;
  if (errno == ENOENT || errno == ENOTDIR)
    return base::Error{base::ErrorCode::bad_input, "data folder " + path + " is not there or no folder", {}};
  return base::system_error("open the data folder " + path, errno);
}

base::Expected<base::UniqueFd> open_image_folder(const std::string& path, const std::string& data_path) {
  const auto made = ::mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return base::system_error("create the image folder " + path, errno);
  base::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return base::system_error("open the image folder " + path, errno);
  if (!below(descriptor_path(folder.get()), data_path).empty()) {
    if (made) ::rmdir(path.c_str());
    return bad_image_folder(path, "is in the data folder");
  }
  const auto inside = LiveFolder(folder.get(), 0).entries("");
  if (!inside) return inside.error();
  if (!inside->empty()) return bad_image_folder(path, "holds " + inside->front().name);
  return folder;
}

}  // namespace

DurableImage::DurableImage(base::UniqueFd data, base::UniqueFd image, const EntryStatus& root, dev_t device,
                           std::string data_folder)
    : data_(std::move(data)),
      image_(std::move(image)),
      device_(device),
      data_folder_(std::move(data_folder)),
      tree_(root) {}

base::Expected<DurableImage> DurableImage::create(const std::string& data_folder, const std::string& image_folder,
                                                  Capture capture) {
  auto data = open_data_folder(data_folder);
  if (!data) return data.error();
  struct stat raw {};
  if (::fstat(data->get(), &raw) != 0) return base::system_error("look at the data folder " + data_folder, errno);
  auto root = status_of(data->get(), raw.st_dev);
  if (!root) return root.error();
  auto image = open_image_folder(image_folder, descriptor_path(data->get()));
  if (!image) return image.error();
  DurableImage out(std::move(*data), std::move(*image), *root, raw.st_dev, normal_path(data_folder));
  if (auto taken = out.take_in(capture); !taken) return taken.error();
  return out;
}

base::Status DurableImage::take_in(Capture capture_when) {
  const auto live = LiveFolder(data_.get(), device_).all();
  if (!live) return live.error();
  std::vector<NodeId> ids;
  for (const auto& entry : *live) {
    ids.push_back(DurableTree::root);
    if (entry.status.kind == EntryKind::other) continue;
    const auto folder = entry.parent < 0 ? DurableTree::root : ids[static_cast<std::size_t>(entry.parent)];
    const auto known = tree_.find(entry.status.key).has_value();
    const auto id = ids.back() = tree_.add(folder, entry.name, entry.status);
    if (known || entry.status.kind != EntryKind::file) continue;
    tree_.node(id).in_place = true;
    if (capture_when == Capture::before_change) continue;
    const base::UniqueFd file(::openat(data_.get(), entry.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file) return base::system_error("open " + entry.path + " in the data folder", errno);
    if (auto taken = capture(id, file.get(), entry.status.size); !taken) return taken;
  }
  return base::ok();
}

base::Status DurableImage::capture(NodeId id, int file, std::uint64_t bytes) {
  auto& node = tree_.node(id);
  if (bytes > 0) {
    const auto copy = image_file(durable_copy_name(id), O_WRONLY | O_CREAT | O_TRUNC);
    if (!copy) return copy.error();
    if (auto copied = copier_.copy_whole(file, copy->get(), bytes); !copied) return copied;
  }
  node.status.size = bytes;
  node.in_place = false;
  return base::ok();
}

base::Expected<base::UniqueFd> DurableImage::image_file(const std::string& name, int flags) const {
  base::UniqueFd file(::openat(image_.get(), name.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) return base::system_error("open durable copy " + name, errno);
  return file;
}

base::Expected<DurableImage::Opened> DurableImage::open(const DataFile& file) const {
  auto opened = std::holds_alternative<int>(file.name()) ? open_again(std::get<int>(file.name()))
                                                         : open_path(std::get<std::string>(file.name()));
  if (!opened) return opened;
  // As this process sees it; what is found there is compared with the file before it is believed.
  opened->hint = below(descriptor_path(opened->fd.get()), descriptor_path(data_.get()));
  if (opened->hint == ".") opened->hint.clear();
  return opened;
}

base::Expected<DurableImage::Opened> DurableImage::open_again(int fd) const {
  Opened out;
  auto status = status_of(fd, device_);
  if (!status) return status.error();
  out.status = std::move(*status);
  // A FIFO or a device could do something when it is opened; none of them is durable.
  const auto plain = out.status.kind == EntryKind::file || out.status.kind == EntryKind::folder;
  out.fd.reset(::open(own_descriptor_path(fd).c_str(), (plain ? O_RDONLY : O_PATH) | O_CLOEXEC));
  if (!out.fd) return base::system_error("open a synced file again", errno);
  return out;
}

base::Expected<DurableImage::Opened> DurableImage::open_path(const std::string& path) const {
  auto relative = path;
  if (path.starts_with('/')) {
    relative = below(normal_path(path), data_folder_);
    if (relative.empty())
      return base::Error{base::ErrorCode::bad_input, path + " is not below the data folder " + data_folder_, {}};
  }
  const base::UniqueFd seen(::openat(data_.get(), relative.c_str(), O_PATH | O_CLOEXEC));
  if (!seen) return base::system_error("open " + path + " in the data folder", errno);
  return open_again(seen.get());
}

std::string DurableImage::durable_path(NodeId id) const {
  std::string out;
  while (id != DurableTree::root) {
    const auto& names = tree_.node(id).names;
    if (names.empty()) return "";
    if (!out.empty()) out.insert(0, "/");
    out.insert(0, names.begin()->second);
    id = names.begin()->first;
  }
  return out;
}

base::Expected<bool> DurableImage::names_are_settled(NodeId id, const EntryStatus& status,
                                                     const LiveFolder& live) const {
  const auto& names = tree_.node(id).names;
  if (names.size() != 1 || (status.kind == EntryKind::file && status.links != 1)) return false;
  const auto way = live.way_to(durable_path(id));
  if (!way) return way.error();
  if (!*way || (*way)->empty()) return false;
  // Every folder on the way must be the one that it durably is.
  for (auto step = (*way)->rbegin(); step != (*way)->rend(); ++step) {
    const auto known = tree_.find(step->status.key);
    if (!known || *known != id) return false;
    id = tree_.node(id).names.begin()->first;
  }
  return id == DurableTree::root;
}

base::Expected<bool> DurableImage::ours(const Opened& file, LiveFolder& live) const {
  if (file.status.kind != EntryKind::file && file.status.kind != EntryKind::folder) return false;
  if (tree_.find(file.status.key)) return true;
  if (!file.hint.empty()) {
    const auto way = live.way_to(file.hint);
    if (!way) return way.error();
    if (*way && (*way)->back().status.key == file.status.key) {
      if (file.status.links == 1 || file.status.kind == EntryKind::folder) live.know_only_path(**way);
      return true;
    }
  }
  // A file without a name is where it was; any other must be found.
  if (file.status.links == 0) return file.status.kind == EntryKind::file && !file.hint.empty();
  const auto paths = live.paths_to(file.status.key);
  if (!paths) return paths.error();
  return !paths->empty();
}

base::Expected<std::optional<NodeId>> DurableImage::node_of(const Opened& file, LiveFolder& live) {
  const auto is_ours = ours(file, live);
  if (!is_ours) return is_ours.error();
  if (!*is_ours) return std::optional<NodeId>();
  const auto id = tree_.learn(file.status);
  if (file.status.links == 0 && tree_.unnamed() > max_unnamed) tree_.forget_oldest_unnamed();
  return std::optional(id);
}

base::Status DurableImage::sync_names(NodeId id, const EntryStatus& status, bool data_only, LiveFolder& live) {
  if (id == DurableTree::root || (data_only && !tree_.node(id).names.empty())) return base::ok();
  const auto settled = names_are_settled(id, status, live);
  if (!settled) return settled.error();
  if (*settled) return base::ok();
  return tree_.names_synced(id, [&live](const InodeKey& key) { return live.paths_to(key); });
}

base::Status DurableImage::sync_entries(NodeId id, LiveFolder& live) {
  const auto entries = live.entries(durable_path(id));
  if (!entries) return entries.error();
  return tree_.entries_synced(id, *entries, [&live](const InodeKey& key) { return live.paths_to(key); });
}

base::Status DurableImage::sync_content(NodeId id, const Opened& file, const Range* range) {
  // Never announced, so never changed.
  if (tree_.node(id).in_place) return base::ok();
  return sync_pages(id, file, range == nullptr ? Range{0, file.status.size} : *range, true);
}

base::Status DurableImage::sync_pages(NodeId id, const Opened& file, Range range, bool with_size) {
  auto& node = tree_.node(id);
  if (file.status.size == 0 && node.status.size == 0 && !node.has_clean) return base::ok();
  const auto copy = image_file(durable_copy_name(id), O_RDWR | O_CREAT);
  if (!copy) return copy.error();
  base::UniqueFd clean;
  auto clean_size = std::numeric_limits<std::uint64_t>::max();
  if (node.has_clean) {
    auto opened = image_file(clean_copy_name(id), O_RDWR);
    if (!opened) return opened.error();
    clean = std::move(*opened);
    const auto end = ::lseek(clean.get(), 0, SEEK_END);
    if (end < 0) return base::system_error("look at a clean copy", errno);
    clean_size = static_cast<std::uint64_t>(end);
  }
  if (with_size) {
    // The file was cut off before the failure: what lay beyond must not come back when it grows again.
    if (clean_size < node.status.size && ::ftruncate(copy->get(), static_cast<off_t>(clean_size)) != 0)
      return base::system_error("cut off a durable copy", errno);
    for (const auto fd : {copy->get(), clean.get()})
      if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(file.status.size)) != 0)
        return base::system_error("set the size of a durable copy", errno);
    node.status.size = file.status.size;
  } else {
    range.end = std::min({range.end, clean_size, durable_page_end(file.status.size)});
  }
  const auto copied = copier_.copy_changed({.from = file.fd.get(),
                                            .to = copy->get(),
                                            .clean = clean.get(),
                                            .begin = durable_page_begin(range.begin),
                                            .end = std::min(durable_page_end(range.end), node.status.size)});
  if (!copied) return copied.error();
  return base::ok();
}

base::Status DurableImage::sync_file(const DataFile& file, const Range* range, bool data_only) {
  const auto opened = open(file);
  if (!opened) return opened.error();
  LiveFolder live(data_.get(), device_);
  const auto found = node_of(*opened, live);
  if (!found) return found.error();
  if (!*found) return base::ok();
  const auto id = **found;
  const auto is_folder = opened->status.kind == EntryKind::folder;
  if (!is_folder)
    if (auto done = sync_content(id, *opened, range); !done) return done;
  if (!data_only) tree_.node(id).status.mode = opened->status.mode;
  // A folder that was removed while open has no entries to keep.
  if (auto done = sync_names(id, opened->status, data_only && !is_folder, live); !done) return done;
  if (is_folder && tree_.find(opened->status.key) == id && (id == DurableTree::root || !durable_path(id).empty()))
    if (auto done = sync_entries(id, live); !done) return done;
  let_go();
  return base::ok();
}

base::Status DurableImage::about_to_change(const DataFile& file) {
  const auto opened = open(file);
  if (!opened) {
    // A path that is about to be created, or whose call will fail, changes nothing.
    if (std::holds_alternative<std::string>(file.name()) && opened.error().code == base::ErrorCode::io) {
      const auto& path = std::get<std::string>(file.name());
      struct stat raw {};
      if (::fstatat(data_.get(), path.c_str(), &raw, 0) != 0 && errno != EACCES) return base::ok();
    }
    return opened.error();
  }
  const auto id = tree_.find(opened->status.key);
  if (!id || !tree_.node(*id).in_place) return base::ok();
  const auto& start = tree_.node(*id).status;
  if (start.size != opened->status.size || start.changed != opened->status.changed)
    announced_late_.push_back(durable_path(*id));
  return capture(*id, opened->fd.get(), opened->status.size);
}

base::Status DurableImage::synced(const DataFile& file, bool data_only) { return sync_file(file, nullptr, data_only); }

base::Status DurableImage::written(const DataFile& file, std::uint64_t offset, std::uint64_t length, bool data_only) {
  const Range range{offset, offset + std::min(length, std::numeric_limits<std::uint64_t>::max() - offset)};
  return sync_file(file, &range, data_only);
}

base::Status DurableImage::synced_range(const DataFile& file, std::uint64_t offset, std::uint64_t length) {
  const auto opened = open(file);
  if (!opened) return opened.error();
  const auto id = tree_.find(opened->status.key);
  // A file that is not durable has no metadata to reach the pages by.
  if (!id || opened->status.kind != EntryKind::file || tree_.node(*id).in_place) return base::ok();
  const auto end = length == 0 ? opened->status.size  // as of sync_file_range(2): up to the end of the file
                               : offset + std::min(length, std::numeric_limits<std::uint64_t>::max() - offset);
  return sync_pages(*id, *opened, {offset, end}, false);
}

base::Status DurableImage::synced_all() {
  LiveFolder live(data_.get(), device_);
  const auto everything = live.all();
  if (!everything) return everything.error();
  std::vector<std::vector<LiveStep>> entries(everything->size() + 1);
  for (const auto& entry : *everything)
    entries[entry.parent < 0 ? 0 : static_cast<std::size_t>(entry.parent) + 1].push_back({entry.name, entry.status});
  const auto paths = [&live](const InodeKey& key) { return live.paths_to(key); };
  if (auto done = tree_.entries_synced(DurableTree::root, entries[0], paths); !done) return done;
  const auto root = status_of(data_.get(), device_);
  if (!root) return root.error();
  tree_.node(DurableTree::root).status.mode = root->mode;
  for (std::size_t i = 0; i < everything->size(); ++i) {
    const auto& entry = (*everything)[i];
    const auto id = tree_.find(entry.status.key);
    if (!id || entry.status.kind == EntryKind::other) continue;
    tree_.node(*id).status.mode = entry.status.mode;
    if (entry.status.kind == EntryKind::folder)
      if (auto done = tree_.entries_synced(*id, entries[i + 1], paths); !done) return done;
    if (entry.status.kind != EntryKind::file || tree_.node(*id).in_place) continue;
    base::UniqueFd fd(::openat(data_.get(), entry.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd && errno == ENOENT) continue;  // removed since
    if (!fd) return base::system_error("open " + entry.path + " in the data folder", errno);
    auto status = status_of(fd.get(), device_);
    if (!status) return status.error();
    if (status->key != entry.status.key) continue;
    if (auto done = sync_content(*id, {std::move(fd), std::move(*status), ""}, nullptr); !done) return done;
  }
  let_go();
  return base::ok();
}

void DurableImage::lied(const DataFile&) { ++lies_; }

base::Expected<std::uint64_t> DurableImage::sync_failed(const DataFile& file) {
  constexpr std::uint64_t nothing = 0;
  ++failures_;
  const auto opened = open(file);
  if (!opened) return opened.error();
  // A folder has no pages; its changes wait for the next sync.
  if (opened->status.kind != EntryKind::file) return nothing;
  LiveFolder live(data_.get(), device_);
  const auto found = node_of(*opened, live);
  if (!found) return found.error();
  if (!*found || tree_.node(**found).in_place) return nothing;
  auto& node = tree_.node(**found);
  // Without durable bytes there is no copy of them.
  const auto before = image_file(node.has_clean ? clean_copy_name(**found) : durable_copy_name(**found), O_RDONLY);
  if (!before && node.status.size > 0) return before.error();
  auto dropped = copier_.copy_changed(
      {.from = opened->fd.get(), .to = before ? before->get() : -1, .end = opened->status.size, .only_count = true});
  if (!dropped) return dropped;
  const auto clean = image_file(clean_copy_name(**found), O_WRONLY | O_CREAT | O_TRUNC);
  if (!clean) return clean.error();
  node.has_clean = true;
  if (const auto copied = copier_.copy_whole(opened->fd.get(), clean->get(), opened->status.size); !copied)
    return copied.error();
  return dropped;
}

void DurableImage::let_go() {
  for (const auto id : tree_.take_forgotten()) {
    ::unlinkat(image_.get(), durable_copy_name(id).c_str(), 0);
    ::unlinkat(image_.get(), clean_copy_name(id).c_str(), 0);
  }
}

base::Expected<PowerLoss> DurableImage::power_loss() {
  auto lost = restore_durable({data_.get(), image_.get(), device_, tree_, copier_});
  if (!lost) return lost;
  std::vector<NodeId> failed;
  for (const auto& [id, node] : tree_.nodes())
    if (node.has_clean) failed.push_back(id);
  for (const auto id : failed) {
    tree_.node(id).has_clean = false;
    ::unlinkat(image_.get(), clean_copy_name(id).c_str(), 0);
  }
  tree_.forget_unnamed();
  let_go();
  for (auto& path : std::exchange(announced_late_, {})) lost->unannounced.push_back(std::move(path));
  lost->lies = std::exchange(lies_, 0);
  lost->syncs_failed = std::exchange(failures_, 0);
  return lost;
}

}  // namespace leafcutter::node
