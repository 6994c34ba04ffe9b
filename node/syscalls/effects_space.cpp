// A disk with room for so many further bytes. What a call will use is reckoned from sizes of files, not from blocks: a
// write within a file's size uses none, what grows a file uses the growth, a new name uses no bytes but needs that some
// are left, as a new inode would. Memory that is mapped and written is not seen.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "node/syscalls/asked.hpp"
#include "node/syscalls/effects.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

base::Expected<std::optional<struct stat>> status_at(const Target& task, const seccomp_data& call, int path_index,
                                                     int folder_index, bool follow) {
  auto path = task.text(call.args[path_index]);
  if (!path) return path.error();
  if (path->empty() || path->front() != '/') {
    const auto folder = task.folder(folder_index == none ? AT_FDCWD : static_cast<int>(call.args[folder_index]));
    if (!folder) return folder.error();
    *path = *folder + "/" + *path;
  }
  const auto root = task.root();
  if (!root) return root.error();
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | (follow ? 0u : static_cast<unsigned>(O_NOFOLLOW));
  how.resolve = RESOLVE_IN_ROOT;
  const base::UniqueFd found(static_cast<int>(::syscall(SYS_openat2, root->get(), path->c_str(), &how, sizeof how)));
  struct stat status {};
  if (found && ::fstat(found.get(), &status) == 0) return std::optional(status);
  return std::optional<struct stat>();
}

std::uint64_t size_of(const struct stat& status) {
  return S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)) : 0;
}

std::uint64_t beyond(std::uint64_t end, std::uint64_t size) { return end > size ? end - size : 0; }

base::Expected<SpaceUse> use_of_write(const Target& task, const seccomp_data& call, const CallShape& shape,
                                      std::uint64_t bytes) {
  const auto fd = static_cast<int>(call.args[shape.fd]);
  const auto status = task.descriptor_status(fd);
  if (!status) return status.error();
  auto offset = named_offset(call);
  if (shape.source != none) {
    const auto passed = passed_offset(call, task, false);
    if (!passed) return passed.error();
    offset = *passed;
  }
  if (!offset) {
    const auto standing = standing_offset(task, fd, true);
    if (!standing) return standing.error();
    offset = *standing;
  }
  SpaceUse use;
  use.carries = bytes;
  use.divisible = true;
  use.grows = std::min(bytes, beyond(*offset + bytes, size_of(*status)));
  return use;
}

base::Expected<SpaceUse> use_of_open(const Target& task, const seccomp_data& call, const CallShape& shape) {
  const auto flags = asked_flags(call, task);
  if (!flags) return flags.error();
  SpaceUse use;
  if ((*flags & O_TMPFILE) == O_TMPFILE) {
    use.new_name = true;
    return use;
  }
  if ((*flags & (O_CREAT | O_TRUNC)) == 0) return use;
  const auto there = status_at(task, call, shape.path, shape.folder, true);
  if (!there) return there.error();
  use.new_name = !*there && (*flags & O_CREAT) != 0;
  if (*there && (*flags & O_TRUNC) != 0 && (*flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
    use.gives = size_of(**there);
  return use;
}

base::Expected<SpaceUse> use_of_length(const Target& task, const seccomp_data& call, const CallShape& shape) {
  std::optional<struct stat> status;
  if (call.nr == SYS_truncate) {
    auto there = status_at(task, call, shape.path, shape.folder, true);
    if (!there) return there.error();
    status = *there;
  } else {
    const auto open = task.descriptor_status(static_cast<int>(call.args[0]));
    if (!open) return open.error();
    status = *open;
  }
  SpaceUse use;
  const auto length = call.args[1];
  if (!status || static_cast<std::int64_t>(length) < 0) return use;
  use.grows = beyond(length, size_of(*status));
  use.gives = beyond(size_of(*status), length);
  return use;
}

base::Expected<SpaceUse> use_of_allocation(const Target& task, const seccomp_data& call) {
  const auto status = task.descriptor_status(static_cast<int>(call.args[0]));
  if (!status) return status.error();
  SpaceUse use;
  const auto mode = static_cast<int>(call.args[1]);
  if ((mode & ~FALLOC_FL_KEEP_SIZE) == 0)
    use.grows = std::min<std::uint64_t>(call.args[3], beyond(call.args[2] + call.args[3], size_of(*status)));
  if (mode == FALLOC_FL_INSERT_RANGE) use.grows = call.args[3];
  if (mode == FALLOC_FL_COLLAPSE_RANGE) use.gives = std::min<std::uint64_t>(call.args[3], size_of(*status));
  return use;
}

/// A name that goes: the bytes go with the file's last one. (A file that is still open keeps them; here they are free.)
base::Expected<SpaceUse> use_of_removal(const Target& task, const seccomp_data& call, int path, int folder) {
  const auto there = status_at(task, call, path, folder, false);
  if (!there) return there.error();
  SpaceUse use;
  if (*there && (*there)->st_nlink == 1) use.gives = size_of(**there);
  return use;
}

base::Expected<SpaceUse> use_of(const Target& task, const seccomp_data& call, const Object& object,
                                std::uint64_t bytes) {
  const auto* shape = call_shape(call.nr);
  if (shape == nullptr) return SpaceUse();
  if (object.family == "write") return use_of_write(task, call, *shape, bytes);
  if (object.family == "open") return use_of_open(task, call, *shape);
  if (object.family == "truncate") return use_of_length(task, call, *shape);
  if (object.family == "allocate") return use_of_allocation(task, call);
  if (object.family == "unlink" || object.family == "rename") {
    auto use = use_of_removal(task, call, shape->path, shape->folder);
    const auto links =
        call.nr == SYS_link || call.nr == SYS_linkat || call.nr == SYS_symlink || call.nr == SYS_symlinkat;
    if (use && links) *use = {.new_name = true};
    return use;
  }
  SpaceUse use;
  use.new_name = object.family == "mkdir";
  return use;
}

}  // namespace

/// A full disk is full for every call that needs space: not only for those that the fault's own site or rule names.
void Effects::add_space_faults(Case& at) const {
  const auto* kind = scenarios::fault_kind("no-space");
  if (std::ranges::find(kind->watches, at.object.family) == kind->watches.end()) return;
  for (const auto index : space_faults_) {
    const auto& fault = context_.sites.plan().faults[index];
    const auto struck = std::ranges::any_of(at.endings, [&](const Strike& strike) { return strike.index == index; });
    if (struck) {
      context_.sites.begin(index, fault.params.value("after", std::uint64_t{0}));
      continue;
    }
    if (!context_.sites.left(index) || !is_on_disk(at.object, fault)) continue;
    const auto place = std::ranges::find_if(at.endings, [&](const Strike& strike) { return strike.index > index; });
    at.endings.insert(place, {index, fault});
  }
}

/// The disk of a rule with a path is what has such a path; of every other, what a family means by itself: the data
/// folder, and for a program that is run alone, every file that is not the system's.
bool Effects::is_on_disk(const Object& object, const scenarios::Fault& fault) const {
  if (object.socket || object.path.empty()) return false;
  if (!fault.aim || fault.aim->path.empty()) return object.state == Object::State::site;
  scenarios::Aim by_path;
  by_path.path = fault.aim->path;
  return by_path.selects(object.facts(), context_.data_folder);
}

base::Expected<SpaceUse> Effects::space_use(const Case& at, std::uint64_t at_most) const {
  const auto bytes = at.object.family == "write" ? carried_bytes(at) : base::Expected<std::uint64_t>(0);
  if (!bytes) return bytes.error();
  return use_of(target(at), at.notification.data, at.object, std::min(*bytes, at_most));
}

/// A fault that carries the call out ends it before the turn of those of the disk that come later in the plan, or that
/// strike where the bytes go to.
bool Effects::find_room(Case& at, std::uint64_t at_most) const {
  std::vector<std::pair<std::size_t, SpaceUse>> found;
  for (const auto* side = &at; side != nullptr; side = side->then.get())
    for (const auto& strike : side->endings) {
      const auto left = strike.fault.kind == "no-space" ? context_.sites.left(strike.index) : std::nullopt;
      if (!left) continue;
      const auto use = space_use(*side, at_most);
      if (!use) continue;  // nor could its own turn come
      if (!use->fits(*left)) return false;
      found.emplace_back(strike.index, *use);
    }
  at.space = std::move(found);
  return true;
}

base::Expected<Effects::Ended> Effects::run_out_of_space(Case& at, const Strike& strike) {
  const auto left = context_.sites.left(strike.index);
  if (!left) return Ended::no;
  const auto task = target(at);
  const auto use = space_use(at, all_bytes);
  if (!use) return cannot(at, strike, use.error().message);
  if (use->fits(*left)) {
    at.space.emplace_back(strike.index, *use);
    return Ended::no;
  }
  const auto name = strike.fault.params.value("error", "ENOSPC");
  auto proof = evidence(at);
  proof["asked"] = use->new_name ? 0 : use->divisible ? use->carries : use->grows;
  proof["left"] = *left;
  proof["errno"] = scenarios::error_number(name);
  proof["errno_name"] = name;
  const auto fits = use->divisible ? use->carries - (use->grows - *left) : 0;
  if (fits > 0) {
    if (!find_room(at, fits)) return cannot(at, strike, full_first);
    auto part = request(at, task);
    part.at_most = fits;
    part.answered = true;
    const auto done = carry_out(at, part);
    if (!done) return done.error();
    if (!done->done || done->result <= 0) return cannot(at, strike, done->done ? "the call failed" : done->why);
    account_space(at, done->result);
    proof["carried"] = done->result;
    return strike_with(at, strike, {.value = done->result}, {{"effect", "no-space"}}, std::move(proof));
  }
  return strike_with(at, strike, {.error = scenarios::error_number(name)}, {{"effect", "no-space"}, {"errno", name}},
                     std::move(proof));
}

void Effects::account_space(const Case& at, std::int64_t carried) {
  if (carried < 0) return;
  for (const auto& [fault, use] : at.space) {
    const auto left_out = beyond(use.carries, static_cast<std::uint64_t>(carried));  // of its end, which is what grows
    context_.sites.use(fault, beyond(use.grows, left_out));
    context_.sites.give_back(fault, use.gives);
  }
}

}  // namespace leafcutter::node
