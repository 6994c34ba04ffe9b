#include "node/syscalls/live_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace leafcutter::node {
namespace {

constexpr unsigned statx_wanted = STATX_BASIC_STATS | STATX_BTIME;
constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;

struct CloseFolderStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using FolderStream = std::unique_ptr<DIR, CloseFolderStream>;

EntryStatus from_statx(const struct statx& raw, dev_t device) {
  EntryStatus out;
  out.key.number = raw.stx_ino;
  if ((raw.stx_mask & STATX_BTIME) != 0) {
    out.key.born_seconds = raw.stx_btime.tv_sec;
    out.key.born_nanoseconds = raw.stx_btime.tv_nsec;
  }
  out.mode = raw.stx_mode & 07777;
  out.links = raw.stx_nlink;
  out.changed = raw.stx_mtime.tv_sec * nanoseconds_a_second + raw.stx_mtime.tv_nsec;
  if (makedev(raw.stx_dev_major, raw.stx_dev_minor) != device) return out;
  if (S_ISREG(raw.stx_mode)) {
    out.kind = EntryKind::file;
    out.size = raw.stx_size;
  } else if (S_ISDIR(raw.stx_mode)) {
    out.kind = EntryKind::folder;
  } else if (S_ISLNK(raw.stx_mode)) {
    out.kind = EntryKind::link;
  }
  return out;
}

/// Nothing when there is no such entry (any more).
base::Expected<std::optional<EntryStatus>> live_entry_status(int folder, const std::string& name, dev_t device) {
  struct statx raw {};
  if (::statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, statx_wanted, &raw) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<EntryStatus>();
    return base::system_error("look at " + name + " in the data folder", errno);
  }
  auto out = from_statx(raw, device);
  if (out.kind == EntryKind::link) {
    char target[PATH_MAX];
    const auto length = ::readlinkat(folder, name.c_str(), target, sizeof target);
    if (length < 0) return std::optional<EntryStatus>();  // replaced in between
    out.target.assign(target, static_cast<std::size_t>(length));
  }
  return std::optional(out);
}

std::string joined_live_path(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

/// A stream over the folder; null when it is gone.
base::Expected<FolderStream> open_folder_stream(int root, const std::string& path) {
  base::UniqueFd fd(::openat(root, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return FolderStream();
    return base::system_error("open the folder " + path + " in the data folder", errno);
  }
  FolderStream stream(::fdopendir(fd.get()));
  if (!stream) return base::system_error("read the folder " + path + " in the data folder", errno);
  static_cast<void>(fd.release());
  return stream;
}

/// The next entry that is not "." or ".."; null at the end.
const dirent* next_live_entry(DIR* stream) {
  while (const auto* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
  return nullptr;
}

base::Error too_many_entries() {
  return {base::ErrorCode::unavailable,
          "the data folder holds more than " + std::to_string(LiveFolder::max_entries) +
              " entries; unsynced data cannot be told from synced in one so large",
          {}};
}

}  // namespace

base::Expected<EntryStatus> status_of(int fd, dev_t device) {
  struct statx raw {};
  if (::statx(fd, "", AT_EMPTY_PATH, statx_wanted, &raw) != 0)
    return base::system_error("look at a file of the data folder", errno);
  return from_statx(raw, device);
}

base::Expected<std::vector<LiveStep>> LiveFolder::entries(const std::string& path) const {
  auto stream = open_folder_stream(root_, path);
  if (!stream) return stream.error();
  std::vector<LiveStep> out;
  if (!*stream) return out;
  while (const auto* entry = next_live_entry(stream->get())) {
    if (out.size() >= max_entries) return too_many_entries();
    auto status = live_entry_status(::dirfd(stream->get()), entry->d_name, device_);
    if (!status) return status.error();
    if (*status) out.push_back({entry->d_name, std::move(**status)});
  }
  std::ranges::sort(out, {}, &LiveStep::name);
  return out;
}

base::Expected<std::optional<LivePath>> LiveFolder::way_to(const std::string& path) const {
  LivePath out;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (!out.empty() && out.back().status.kind != EntryKind::folder) return std::optional<LivePath>();
    auto status = live_entry_status(root_, path.substr(0, end), device_);
    if (!status) return status.error();
    if (!*status) return std::optional<LivePath>();
    out.push_back({path.substr(begin, end - begin), std::move(**status)});
    begin = end + 1;
  }
  return std::optional(std::move(out));
}

std::string LiveFolder::path_of(int folder) const {
  std::string out;
  for (; folder >= 0; folder = folders_[static_cast<std::size_t>(folder)].parent) {
    const auto& name = folders_[static_cast<std::size_t>(folder)].name;
    if (!out.empty()) out.insert(0, "/");
    out.insert(0, name);
  }
  return out;
}

base::Status LiveFolder::read_all_names() {
  read_ = true;
  for (int at = -1; at < static_cast<int>(folders_.size()); ++at) {
    auto stream = open_folder_stream(root_, path_of(at));
    if (!stream) return stream.error();
    if (!*stream) continue;
    while (const auto* entry = next_live_entry(stream->get())) {
      if (places_.size() >= max_entries) return too_many_entries();
      places_.emplace(entry->d_ino, Place{at, entry->d_name});
      if (entry->d_type == DT_DIR) folders_.push_back({at, entry->d_name});
    }
  }
  return base::ok();
}

void LiveFolder::know_only_path(const LivePath& path) { known_ = path; }

base::Expected<std::vector<LivePath>> LiveFolder::paths_to(const InodeKey& key) {
  if (known_ && !known_->empty() && known_->back().status.key == key) return std::vector<LivePath>{*known_};
  if (!read_)
    if (auto read = read_all_names(); !read) return read.error();
  std::vector<std::string> paths;
  const auto [first, last] = places_.equal_range(key.number);
  for (auto place = first; place != last; ++place)
    paths.push_back(joined_live_path(path_of(place->second.folder), place->second.name));
  std::ranges::sort(paths);
  std::vector<LivePath> out;
  for (const auto& path : paths) {
    auto way = way_to(path);
    if (!way) return way.error();
    if (*way && (*way)->back().status.key == key) out.push_back(std::move(**way));
  }
  return out;
}

base::Expected<std::vector<LiveEntry>> LiveFolder::all() const {
  std::vector<LiveEntry> out;
  for (int at = -1; at < static_cast<int>(out.size()); ++at) {
    if (at >= 0 && out[static_cast<std::size_t>(at)].status.kind != EntryKind::folder) continue;
    const auto folder = at < 0 ? std::string() : out[static_cast<std::size_t>(at)].path;
    auto inside = entries(folder);
    if (!inside) return inside.error();
    if (out.size() + inside->size() > max_entries) return too_many_entries();
    for (auto& entry : *inside) {
      auto path = joined_live_path(folder, entry.name);
      out.push_back({std::move(path), std::move(entry.name), at, std::move(entry.status)});
    }
  }
  return out;
}

}  // namespace leafcutter::node
