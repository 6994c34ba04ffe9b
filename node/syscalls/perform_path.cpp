// Calls on paths. The path is resolved inside the task's root folder by the kernel (RESOLVE_IN_ROOT), so a symbolic
// link leads where it leads for the task, and never out of what the task sees.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "node/syscalls/calls.hpp"
#include "node/syscalls/perform.hpp"

namespace leafcutter::node {
namespace {

/// A path that the task named: absolute, as text, links not yet followed.
base::Expected<std::string> absolute(const Request& request, int path_index, int folder_index) {
  auto path = request.target.text(request.word(path_index));
  if (!path || (!path->empty() && path->front() == '/')) return path;
  if (path->empty()) return base::Error{base::ErrorCode::io, "the path is empty", {}};
  const auto folder = request.target.folder(folder_index == none ? AT_FDCWD : request.integer(folder_index));
  if (!folder) return folder.error();
  return *folder + "/" + *path;
}

int open_in(int root, const std::string& path, std::uint64_t flags, std::uint64_t mode, std::uint64_t resolve = 0) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = resolve | RESOLVE_IN_ROOT;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

/// The folder a name is made in or removed from, and the name.
struct Entry {
  base::UniqueFd folder;
  std::string name;
};

base::Expected<Entry> entry(const Request& request, int root, int path_index, int folder_index) {
  auto path = absolute(request, path_index, folder_index);
  if (!path) return path.error();
  while (path->size() > 1 && path->back() == '/') path->pop_back();
  const auto slash = path->rfind('/');
  Entry out;
  out.name = path->substr(slash + 1);
  if (out.name.empty()) return base::Error{base::ErrorCode::io, "the path is the root folder", {}};
  out.folder.reset(open_in(root, slash == 0 ? "/" : path->substr(0, slash), O_PATH | O_DIRECTORY, 0));
  if (!out.folder) return base::system_error("open the folder of " + *path, errno);
  return out;
}

/// The bits a new file gets: as asked, less the task's umask. The supervisor's own is 0 (supervisor.cpp).
base::Expected<std::uint64_t> new_mode(const Request& request, std::uint64_t asked) {
  const auto mask = request.target.umask();
  if (!mask) return mask.error();
  return (asked & 07777u) & ~static_cast<std::uint64_t>(*mask);
}

struct OpenArguments {
  int path = 0;
  int folder = none;
  std::uint64_t flags = 0;
  std::uint64_t mode = 0;
  std::uint64_t resolve = 0;
};

base::Expected<OpenArguments> open_arguments(const Request& request) {
  const auto flags = [&](int index) { return request.word(index) & 0xffffffffu; };
  switch (request.call.nr) {
    case SYS_open: return OpenArguments{0, none, flags(1), request.word(2), 0};
    case SYS_openat: return OpenArguments{1, 0, flags(2), request.word(3), 0};
    case SYS_creat: return OpenArguments{0, none, O_CREAT | O_WRONLY | O_TRUNC, request.word(1), 0};
    default: break;
  }
  const auto how = request.target.value<open_how>(request.word(2));
  if (!how) return how.error();
  if ((how->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0)
    return base::Error{
        base::ErrorCode::io, "openat2 with RESOLVE_BENEATH or RESOLVE_IN_ROOT is not carried out for a task", {}};
  return OpenArguments{1, 0, how->flags, how->mode, how->resolve & (RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)};
}

/// The effect of an open is what it creates or empties; the descriptor itself would die with the task.
Performed open_file(const Request& request, int root) {
  const auto arguments = open_arguments(request);
  if (!arguments) return not_performed(arguments.error().message);
  const auto path = absolute(request, arguments->path, arguments->folder);
  if (!path) return not_performed(path.error().message);
  constexpr std::uint64_t kept =
      O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_NOFOLLOW | O_TMPFILE;
  const auto flags = (arguments->flags & kept) | O_NONBLOCK | O_NOCTTY;
  const auto creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  std::uint64_t mode = 0;
  if (creates) {
    const auto wanted = new_mode(request, arguments->mode);
    if (!wanted) return not_performed(wanted.error().message);
    mode = *wanted;
  }
  if (!request.still_valid()) return not_performed("the task has gone");
  const base::UniqueFd opened(open_in(root, *path, flags, mode, arguments->resolve));
  return opened ? performed(0) : performed(-1);
}

Performed truncate_file(const Request& request, int root) {
  const auto path = absolute(request, 0, none);
  if (!path) return not_performed(path.error().message);
  if (!request.still_valid()) return not_performed("the task has gone");
  const base::UniqueFd opened(open_in(root, *path, O_WRONLY | O_NONBLOCK | O_NOCTTY, 0));
  if (!opened) return performed(-1);
  return performed(::ftruncate(opened.get(), static_cast<off_t>(request.word(1))));
}

Performed sync_mapping(const Request& request, int root) {
  const auto path = request.target.mapped_file(request.word(0));
  if (!path) return not_performed(path.error().message);
  if (path->empty() || path->ends_with(" (deleted)")) return not_performed("the mapped file has no name any more");
  const base::UniqueFd opened(open_in(root, *path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
  if (!opened) return not_performed(base::system_error("open " + *path, errno).message);
  if (!request.still_valid()) return not_performed("the task has gone");
  return performed(::fdatasync(opened.get()));
}

struct TwoPaths {
  int from = 0, from_folder = none, to = 1, to_folder = none;
  std::uint64_t flags = 0;
};

Performed two_paths(const Request& request, int root, const TwoPaths& places, bool link) {
  if (link && (places.flags & AT_EMPTY_PATH) != 0)
    return not_performed("linkat with AT_EMPTY_PATH is not carried out for a task");
  const auto from = entry(request, root, places.from, places.from_folder);
  if (!from) return not_performed(from.error().message);
  const auto to = entry(request, root, places.to, places.to_folder);
  if (!to) return not_performed(to.error().message);
  if (!request.still_valid()) return not_performed("the task has gone");
  const auto flags = static_cast<unsigned>(places.flags);
  const auto *const old_name = from->name.c_str(), *const new_name = to->name.c_str();
  if (link)
    return performed(::linkat(from->folder.get(), old_name, to->folder.get(), new_name, static_cast<int>(flags)));
  return performed(::renameat2(from->folder.get(), old_name, to->folder.get(), new_name, flags));
}

Performed one_entry(const Request& request, int root, const CallShape& shape) {
  const auto at = entry(request, root, shape.path, shape.folder);
  if (!at) return not_performed(at.error().message);
  const auto folder = at->folder.get();
  const auto* const name = at->name.c_str();
  const auto nr = request.call.nr;
  std::uint64_t mode = 0;
  if (nr == SYS_mkdir || nr == SYS_mkdirat) {
    const auto wanted = new_mode(request, request.word(shape.path + 1));
    if (!wanted) return not_performed(wanted.error().message);
    mode = *wanted;
  }
  const auto links = nr == SYS_symlink || nr == SYS_symlinkat;
  const auto leads_to = links ? request.target.text(request.word(0)) : base::Expected<std::string>(std::string());
  if (!leads_to) return not_performed(leads_to.error().message);
  if (!request.still_valid()) return not_performed("the task has gone");
  switch (nr) {
    case SYS_symlink:
    case SYS_symlinkat: return performed(::symlinkat(leads_to->c_str(), folder, name));
    case SYS_unlink: return performed(::unlinkat(folder, name, 0));
    case SYS_unlinkat: return performed(::unlinkat(folder, name, request.integer(2)));
    case SYS_rmdir: return performed(::unlinkat(folder, name, AT_REMOVEDIR));
    case SYS_mkdir:
    case SYS_mkdirat: return performed(::mkdirat(folder, name, static_cast<mode_t>(mode)));
    default: return not_performed("this call is not carried out for a task");
  }
}

}  // namespace

Performed perform_on_path(const Request& request) {
  const auto* shape = call_shape(request.call.nr);
  if (shape == nullptr) return not_performed("this call is not carried out for a task");
  const auto root = request.target.root();
  if (!root) return not_performed(root.error().message);
  switch (request.call.nr) {
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat: return open_file(request, root->get());
    case SYS_truncate: return truncate_file(request, root->get());
    case SYS_msync: return sync_mapping(request, root->get());
    case SYS_rename: return two_paths(request, root->get(), {}, false);
    case SYS_renameat: return two_paths(request, root->get(), {1, 0, 3, 2, 0}, false);
    case SYS_renameat2: return two_paths(request, root->get(), {1, 0, 3, 2, request.word(4)}, false);
    case SYS_link: return two_paths(request, root->get(), {}, true);
    case SYS_linkat: return two_paths(request, root->get(), {1, 0, 3, 2, request.word(4)}, true);
    case SYS_symlink:
    case SYS_symlinkat:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_mkdirat: return one_entry(request, root->get(), *shape);
    default: return not_performed("this call is not carried out for a task");
  }
}

}  // namespace leafcutter::node
