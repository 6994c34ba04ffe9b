// Which system calls one name in a scenario covers, and on which objects.
#include <array>

#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {

const std::vector<SyscallFamily>& syscall_families() {
  // `object` decides what a family means: `write` is for files, and sockets, which the same calls serve, belong to
  // `send`. A call that moves bytes from one object to another belongs to two families, one for each.
  static const std::vector<SyscallFamily> list = {
      {"read",
       {"read", "pread64", "readv", "preadv", "preadv2", "sendfile", "copy_file_range", "splice"},
       "file",
       "reading a file",
       {"sendfile", "copy_file_range", "splice"}},
      {"write",
       {"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice"},
       "file",
       "writing to a file"},
      {"open", {"open", "openat", "openat2", "creat"}, "file", "opening or creating a file"},
      {"fsync", {"fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync"}, "file", "making a file durable"},
      {"rename",
       {"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"},
       "file",
       "renaming or linking a file; the site is the new name"},
      {"unlink", {"unlink", "unlinkat", "rmdir"}, "file", "removing a file or folder"},
      {"mkdir", {"mkdir", "mkdirat"}, "file", "making a folder"},
      {"truncate", {"truncate", "ftruncate"}, "file", "changing a file's length"},
      {"allocate", {"fallocate"}, "file", "reserving space for a file"},
      {"connect", {"connect"}, "socket", "opening a connection"},
      {"accept", {"accept", "accept4"}, "socket", "taking a connection"},
      {"send",
       {"sendto", "sendmsg", "sendmmsg", "write", "writev", "sendfile", "splice"},
       "socket",
       "sending on a socket"},
      {"receive",
       {"recvfrom", "recvmsg", "recvmmsg", "read", "readv", "splice"},
       "socket",
       "receiving from a socket",
       {"splice"}},
      {"sleep", {"nanosleep", "clock_nanosleep"}, "process", "sleeping for a time"},
      {"random", {"getrandom"}, "process", "drawing random bytes from the kernel"},
      {"clock",
       {"clock_gettime", "gettimeofday", "time"},
       "process",
       "reading a clock by a system call; most programs read it through the vDSO, which makes none"},
  };
  return list;
}

const SyscallFamily* syscall_family(std::string_view name) {
  for (const auto& family : syscall_families())
    if (family.name == name) return &family;
  return nullptr;
}

std::vector<std::string> classes_of(const SyscallFamily& family) {
  if (family.object == "socket") return {"socket-tcp", "socket-udp", "socket-unix"};
  if (family.object == "process") return {"process"};
  return {"file", "directory", "pipe", "tty", "eventfd", "other"};
}

}  // namespace leafcutter::scenarios
