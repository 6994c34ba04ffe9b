#include "node/syscalls/object_class.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

namespace leafcutter::node {
namespace {

constexpr int multipath_tcp = 262;  // IPPROTO_MPTCP

/// Documentation/admin-guide/devices.txt: virtual consoles and serial lines, /dev/tty, and the pseudo-terminals.
bool is_terminal(dev_t device) {
  const auto number = major(device);
  return number == 4 || number == 5 || (number >= 136 && number <= 143);
}

int socket_option(int socket, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/// Where the thing is that a call moves or links: before its new name in every one of these calls.
struct PathArgument {
  int path, folder;
};
PathArgument acted_on(const seccomp_data& call, const CallShape& shape) {
  switch (call.nr) {
    case SYS_rename:
    case SYS_link: return {0, none};
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat: return {1, 0};
    default: return {shape.path, shape.folder};
  }
}

}  // namespace

std::string class_of(const struct stat& status) {
  switch (status.st_mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFIFO: return "pipe";
    case S_IFCHR: return is_terminal(status.st_rdev) ? "tty" : "other";
    default: return "other";
  }
}

std::string class_of_nameless(const std::string& descriptor_name) {
  if (descriptor_name.starts_with("pipe:")) return "pipe";
  return descriptor_name == "anon_inode:[eventfd]" ? "eventfd" : "other";
}

std::string class_of_socket(int socket) {
  const auto domain = socket_option(socket, SO_DOMAIN);
  if (domain == AF_UNIX) return "socket-unix";
  if (domain != AF_INET && domain != AF_INET6) return "other";
  const auto protocol = socket_option(socket, SO_PROTOCOL);
  if (protocol == IPPROTO_TCP || protocol == multipath_tcp) return "socket-tcp";
  return protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE ? "socket-udp" : "other";
}

base::Expected<std::string> class_at_path(const seccomp_data& call, const CallShape& shape, const Target& target) {
  if (call.nr == SYS_mkdir || call.nr == SYS_mkdirat) return std::string("directory");
  if (call.nr == SYS_symlink || call.nr == SYS_symlinkat) return std::string("file");
  const auto argument = acted_on(call, shape);
  auto path = target.text(call.args[argument.path]);
  if (!path) return path.error();
  if (path->empty() || path->front() != '/') {
    const auto folder =
        target.folder(argument.folder == none ? AT_FDCWD : static_cast<int>(call.args[argument.folder]));
    if (!folder) return folder.error();
    *path = *folder + "/" + *path;
  }
  const auto root = target.root();
  if (!root) return root.error();
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const base::UniqueFd found(static_cast<int>(::syscall(SYS_openat2, root->get(), path->c_str(), &how, sizeof how)));
  struct stat status {};
  if (found && ::fstat(found.get(), &status) == 0) return class_of(status);
  if (!found && errno == ENOENT) return std::string(call.nr == SYS_rmdir ? "directory" : "file");
  return base::system_error("look at " + *path, errno);
}

std::string clock_name(int clock) {
  static constexpr std::array names = {std::pair{CLOCK_REALTIME, "CLOCK_REALTIME"},
                                       std::pair{CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
                                       std::pair{CLOCK_PROCESS_CPUTIME_ID, "CLOCK_PROCESS_CPUTIME_ID"},
                                       std::pair{CLOCK_THREAD_CPUTIME_ID, "CLOCK_THREAD_CPUTIME_ID"},
                                       std::pair{CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
                                       std::pair{CLOCK_REALTIME_COARSE, "CLOCK_REALTIME_COARSE"},
                                       std::pair{CLOCK_MONOTONIC_COARSE, "CLOCK_MONOTONIC_COARSE"},
                                       std::pair{CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
                                       std::pair{CLOCK_REALTIME_ALARM, "CLOCK_REALTIME_ALARM"},
                                       std::pair{CLOCK_BOOTTIME_ALARM, "CLOCK_BOOTTIME_ALARM"},
                                       std::pair{CLOCK_TAI, "CLOCK_TAI"}};
  for (const auto& [id, name] : names)
    if (id == clock) return name;
  return "other-clock";
}

}  // namespace leafcutter::node
