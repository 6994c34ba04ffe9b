#include "node/syscalls/asked.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace leafcutter::node {
namespace {

/// The messages that one call may carry (UIO_MAXIOV).
constexpr std::uint64_t messages_at_most = 1024;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

base::Expected<std::vector<Stretch>> vector_at(const Target& target, std::uint64_t address, std::uint64_t count) {
  if (count > IOV_MAX) return base::Error{base::ErrorCode::io, "more buffers than the kernel takes", {}};
  const auto raw = target.memory(address, count * sizeof(iovec));
  if (!raw) return raw.error();
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < count; ++i) {
    iovec part{};
    std::memcpy(&part, raw->data() + i * sizeof part, sizeof part);
    stretches.push_back({address_of(part.iov_base), part.iov_len});
  }
  return stretches;
}

base::Expected<std::vector<Stretch>> buffers_of_message(const Target& target, std::uint64_t address) {
  const auto message = target.value<msghdr>(address);  // an mmsghdr begins with one
  if (!message) return message.error();
  return vector_at(target, address_of(message->msg_iov), message->msg_iovlen);
}

base::Expected<std::optional<std::uint64_t>> size_of_messages(const seccomp_data& call, const Target& target) {
  std::uint64_t total = 0;
  const auto count = std::min<std::uint64_t>(call.args[2] & 0xffffffffu, messages_at_most);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto buffers = buffers_of_message(target, call.args[1] + i * sizeof(mmsghdr));
    if (!buffers) return buffers.error();
    total += total_bytes(*buffers);
  }
  return std::optional(total);
}

}  // namespace

base::Expected<std::vector<Stretch>> buffers_of(const seccomp_data& call, const Target& target) {
  const auto* args = call.args;
  switch (call.nr) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_sendto:
    case SYS_recvfrom: return std::vector<Stretch>{{args[1], args[2]}};
    case SYS_getrandom: return std::vector<Stretch>{{args[0], args[1]}};
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_pwritev:
    case SYS_pwritev2: return vector_at(target, args[1], args[2]);
    case SYS_sendmsg:
    case SYS_recvmsg: return buffers_of_message(target, args[1]);
    case SYS_sendmmsg:
    case SYS_recvmmsg:
      if ((args[2] & 0xffffffffu) == 0) return std::vector<Stretch>();
      return buffers_of_message(target, args[1]);
    default: return std::vector<Stretch>();
  }
}

std::uint64_t total_bytes(const std::vector<Stretch>& stretches) {
  return std::accumulate(stretches.begin(), stretches.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Stretch& stretch) { return sum + stretch.bytes; });
}

base::Expected<std::optional<std::uint64_t>> asked_size(const seccomp_data& call, const Target& target) {
  const auto* args = call.args;
  switch (call.nr) {
    case SYS_sendfile:
    case SYS_fallocate: return std::optional<std::uint64_t>(args[3]);
    case SYS_copy_file_range:
    case SYS_splice: return std::optional<std::uint64_t>(args[4]);
    case SYS_truncate:
    case SYS_ftruncate:
    case SYS_msync: return std::optional<std::uint64_t>(args[1]);
    case SYS_sync_file_range: return std::optional<std::uint64_t>(args[2]);
    case SYS_sendmmsg:
    case SYS_recvmmsg: return size_of_messages(call, target);
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_getrandom:
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendmsg:
    case SYS_recvmsg: {
      const auto buffers = buffers_of(call, target);
      if (!buffers) return buffers.error();
      return std::optional(total_bytes(*buffers));
    }
    default: return std::optional<std::uint64_t>();
  }
}

std::optional<std::uint64_t> named_offset(const seccomp_data& call) {
  switch (call.nr) {
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev: return call.args[3];
    case SYS_preadv2:
    case SYS_pwritev2:  // -1: where the file stands
      return call.args[3] == ~std::uint64_t{0} ? std::nullopt : std::optional<std::uint64_t>(call.args[3]);
    case SYS_fallocate: return call.args[2];
    case SYS_sync_file_range: return call.args[1];
    default: return std::nullopt;
  }
}

base::Expected<std::optional<std::uint64_t>> passed_offset(const seccomp_data& call, const Target& target,
                                                           bool at_source) {
  std::uint64_t address = 0;
  if (call.nr == SYS_copy_file_range || call.nr == SYS_splice) address = call.args[at_source ? 1 : 3];
  if (call.nr == SYS_sendfile && at_source) address = call.args[2];
  if (address == 0) return std::optional<std::uint64_t>();
  const auto passed = target.value<std::uint64_t>(address);
  if (!passed) return passed.error();
  return std::optional(*passed);
}

base::Expected<std::uint64_t> standing_offset(const Target& target, int fd, bool writes) {
  const auto info = target.descriptor_info(fd);
  if (!info) return info.error();
  if (!writes || (info->flags & O_APPEND) == 0) return info->position;
  const auto status = target.descriptor_status(fd);
  if (!status) return status.error();
  return static_cast<std::uint64_t>(status->st_size);
}

base::Expected<std::uint64_t> asked_flags(const seccomp_data& call, const Target& target) {
  const auto word = [&](int index) { return call.args[index] & 0xffffffffu; };
  switch (call.nr) {
    case SYS_open: return word(1);
    case SYS_openat: return word(2);
    case SYS_creat: return std::uint64_t{O_CREAT | O_WRONLY | O_TRUNC};
    case SYS_openat2: {
      const auto how = target.value<open_how>(call.args[2]);
      if (!how) return how.error();
      return std::uint64_t{how->flags};
    }
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_accept4: return word(3);
    case SYS_sendmsg:
    case SYS_recvmsg: return word(2);
    default: return std::uint64_t{0};
  }
}

base::Expected<std::string> named_destination(const seccomp_data& call, const Target& target) {
  const auto at = [&](std::uint64_t address, std::uint64_t size) -> base::Expected<std::string> {
    if (address == 0) return std::string();
    return target.memory(address, std::min<std::uint64_t>(size & 0xffffffffu, sizeof(sockaddr_storage)));
  };
  switch (call.nr) {
    case SYS_sendto: return at(call.args[4], call.args[5]);
    case SYS_sendmsg:
    case SYS_sendmmsg: {
      if (call.nr == SYS_sendmmsg && (call.args[2] & 0xffffffffu) == 0) return std::string();
      const auto message = target.value<msghdr>(call.args[1]);
      if (!message) return message.error();
      return at(address_of(message->msg_name), message->msg_namelen);
    }
    default: return std::string();
  }
}

}  // namespace leafcutter::node
