#include "node/syscalls/calls.hpp"

#include <sys/syscall.h>

#include <array>

namespace leafcutter::node {
namespace {

using Object = CallShape::Object;

constexpr CallShape descriptor(const char* name, int number, int fd = 0) {
  return {.name = name, .number = number, .object = Object::descriptor, .fd = fd};
}
constexpr CallShape between(const char* name, int number, int source, int fd) {
  return {.name = name, .number = number, .object = Object::descriptor, .fd = fd, .source = source};
}
constexpr CallShape path(const char* name, int number, int argument, int folder = none) {
  return {.name = name, .number = number, .object = Object::path, .path = argument, .folder = folder};
}

constexpr CallShape nothing(const char* name, int number) {
  return {.name = name, .number = number, .object = Object::nothing};
}

/// Calls with two paths are named by the one that comes into being.
constexpr std::array shapes = {
    descriptor("read", SYS_read),
    descriptor("pread64", SYS_pread64),
    descriptor("readv", SYS_readv),
    descriptor("preadv", SYS_preadv),
    descriptor("preadv2", SYS_preadv2),
    descriptor("write", SYS_write),
    descriptor("pwrite64", SYS_pwrite64),
    descriptor("writev", SYS_writev),
    descriptor("pwritev", SYS_pwritev),
    descriptor("pwritev2", SYS_pwritev2),
    between("sendfile", SYS_sendfile, 1, 0),
    between("copy_file_range", SYS_copy_file_range, 0, 2),
    between("splice", SYS_splice, 0, 2),
    path("open", SYS_open, 0),
    path("openat", SYS_openat, 1, 0),
    path("openat2", SYS_openat2, 1, 0),
    path("creat", SYS_creat, 0),
    descriptor("fsync", SYS_fsync),
    descriptor("fdatasync", SYS_fdatasync),
    descriptor("sync_file_range", SYS_sync_file_range),
    descriptor("syncfs", SYS_syncfs),
    nothing("sync", SYS_sync),
    CallShape{.name = "msync", .number = SYS_msync, .object = Object::mapping, .path = 0, .size = 1},
    path("rename", SYS_rename, 1),
    path("renameat", SYS_renameat, 3, 2),
    path("renameat2", SYS_renameat2, 3, 2),
    path("link", SYS_link, 1),
    path("linkat", SYS_linkat, 3, 2),
    path("symlink", SYS_symlink, 1),
    path("symlinkat", SYS_symlinkat, 2, 1),
    path("unlink", SYS_unlink, 0),
    path("unlinkat", SYS_unlinkat, 1, 0),
    path("rmdir", SYS_rmdir, 0),
    path("mkdir", SYS_mkdir, 0),
    path("mkdirat", SYS_mkdirat, 1, 0),
    path("truncate", SYS_truncate, 0),
    descriptor("ftruncate", SYS_ftruncate),
    descriptor("fallocate", SYS_fallocate),
    CallShape{.name = "connect", .number = SYS_connect, .object = Object::address, .fd = 0, .path = 1, .size = 2},
    descriptor("accept", SYS_accept),
    descriptor("accept4", SYS_accept4),
    descriptor("sendto", SYS_sendto),
    descriptor("sendmsg", SYS_sendmsg),
    descriptor("sendmmsg", SYS_sendmmsg),
    descriptor("recvfrom", SYS_recvfrom),
    descriptor("recvmsg", SYS_recvmsg),
    descriptor("recvmmsg", SYS_recvmmsg),
    nothing("nanosleep", SYS_nanosleep),
    nothing("clock_nanosleep", SYS_clock_nanosleep),
    nothing("getrandom", SYS_getrandom),
    nothing("clock_gettime", SYS_clock_gettime),
    nothing("gettimeofday", SYS_gettimeofday),
    nothing("time", SYS_time),
};

}  // namespace

const CallShape* call_shape(int number) {
  for (const auto& shape : shapes)
    if (shape.number == number) return &shape;
  return nullptr;
}

const CallShape* call_shape(const std::string& name) {
  for (const auto& shape : shapes)
    if (name == shape.name) return &shape;
  return nullptr;
}

}  // namespace leafcutter::node
