// traffic KIND (send|receive) HOW TEXT [late|never]: makes two connected sockets of a kind (tcp, tcp6, udp, udp-to,
// unix, unix-path, dgram, pipe), sends TEXT from one to the other and receives it. One side makes the call HOW, the
// other makes calls that carry everything. Prints "HOW result errno text-that-arrived". With LATE the bytes are sent
// only when the receiver waits for them in the kernel.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace {

struct Ends {
  int from = -1, to = -1;
  sockaddr_storage name{};  ///< where `from` sends to, when it is not connected
  socklen_t name_size = 0;
};

Ends connected(int domain, int type, const sockaddr* address, socklen_t size) {
  Ends ends;
  const auto listener = ::socket(domain, type, 0);
  if (::bind(listener, address, size) != 0) return ends;
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bound_size);
  ends.from = ::socket(domain, type, 0);
  if (type == SOCK_DGRAM) {
    ends.to = listener;
    ends.name = bound;
    ends.name_size = bound_size;
    return ends;
  }
  if (::listen(listener, 1) != 0 || ::connect(ends.from, reinterpret_cast<sockaddr*>(&bound), bound_size) != 0)
    return {};
  ends.to = ::accept(listener, nullptr, nullptr);
  return ends;
}

Ends make(const std::string& kind) {
  Ends ends;
  if (kind == "unix" || kind == "dgram" || kind == "pipe") {
    int both[2];
    const auto failed =
        kind == "pipe" ? ::pipe(both) : ::socketpair(AF_UNIX, kind == "unix" ? SOCK_STREAM : SOCK_DGRAM, 0, both);
    if (failed != 0) return ends;
    ends.to = both[0];
    ends.from = both[1];
    return ends;
  }
  if (kind == "tcp6") {
    sockaddr_in6 loopback{};
    loopback.sin6_family = AF_INET6;
    loopback.sin6_addr = in6addr_loopback;
    return connected(AF_INET6, SOCK_STREAM, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback);
  }
  if (kind == "unix-path") {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strcpy(name.sun_path, "socket");
    return connected(AF_UNIX, SOCK_STREAM, reinterpret_cast<sockaddr*>(&name), sizeof name);
  }
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ends = connected(AF_INET, kind == "tcp" ? SOCK_STREAM : SOCK_DGRAM, reinterpret_cast<sockaddr*>(&loopback),
                   sizeof loopback);
  if (kind == "udp") {
    if (::connect(ends.from, reinterpret_cast<sockaddr*>(&ends.name), ends.name_size) != 0) return {};
    ends.name_size = 0;
  }
  return ends;
}

/// Two buffers, so that a call with a vector has to spread over both.
struct Parts {
  explicit Parts(std::string& text)
      : parts{{text.data(), text.size() / 2}, {text.data() + text.size() / 2, text.size() - text.size() / 2}} {
    message.msg_hdr.msg_iov = parts;
    message.msg_hdr.msg_iovlen = 2;
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  iovec parts[2];
  mmsghdr message{};
};

int file_with(const std::string& text) {
  std::ofstream("traffic-file") << text;
  return ::open("traffic-file", O_RDONLY);
}

long spliced(int to, const std::string& text) {
  int pipe[2];
  if (::pipe(pipe) != 0) return -1;
  const iovec part{const_cast<char*>(text.data()), text.size()};
  if (::vmsplice(pipe[1], &part, 1, 0) < 0) return -1;
  return ::splice(pipe[0], nullptr, to, nullptr, text.size(), 0);
}

long send_by(const std::string& how, Ends& ends, std::string text) {
  Parts parts(text);
  auto* name = ends.name_size > 0 ? reinterpret_cast<sockaddr*>(&ends.name) : nullptr;
  parts.message.msg_hdr.msg_name = name;
  parts.message.msg_hdr.msg_namelen = ends.name_size;
  if (how == "send") return ::sendto(ends.from, text.data(), text.size(), 0, name, ends.name_size);
  if (how == "send-nosignal") return ::send(ends.from, text.data(), text.size(), MSG_NOSIGNAL);
  if (how == "sendmsg") return ::sendmsg(ends.from, &parts.message.msg_hdr, 0);
  if (how == "sendmmsg") {
    const auto sent = ::sendmmsg(ends.from, &parts.message, 1, 0);
    return sent == 1 ? static_cast<long>(parts.message.msg_len) : -1;
  }
  if (how == "write") return ::write(ends.from, text.data(), text.size());
  if (how == "writev") return ::writev(ends.from, parts.parts, 2);
  if (how == "splice") return spliced(ends.from, text);
  off_t offset = 0;
  const auto file = file_with(text);
  if (how == "sendfile") {
    const auto sent = ::sendfile(ends.from, file, nullptr, text.size());
    const auto failed = errno;
    const auto moved_on = sent < 0 || sent == ::lseek(file, 0, SEEK_CUR);
    errno = failed;
    return moved_on ? sent : -2;
  }
  const auto sent = ::sendfile(ends.from, file, &offset, text.size());
  return sent < 0 || sent == offset ? sent : -2;
}

long receive_by(const std::string& how, int fd, std::string& text) {
  Parts parts(text);
  sockaddr_storage name{};
  socklen_t name_size = sizeof name;
  if (how == "recv-limited") {
    const timeval limit{0, 50'000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return ::recv(fd, text.data(), text.size(), 0);
  }
  if (how == "recv") return ::recv(fd, text.data(), text.size(), 0);
  if (how == "recvfrom") {
    const auto got = ::recvfrom(fd, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&name), &name_size);
    return name.ss_family == AF_INET && name_size != sizeof(sockaddr_in) ? -2 : got;
  }
  if (how == "recvmsg") return ::recvmsg(fd, &parts.message.msg_hdr, 0);
  if (how == "recvmmsg") {
    const auto got = ::recvmmsg(fd, &parts.message, 1, 0, nullptr);
    return got == 1 ? static_cast<long>(parts.message.msg_len) : -1;
  }
  if (how == "readv") return ::readv(fd, parts.parts, 2);
  if (how == "splice") {
    int pipe[2];
    if (::pipe(pipe) != 0) return -1;
    const auto moved = ::splice(fd, nullptr, pipe[1], nullptr, text.size(), 0);
    return moved > 0 ? ::read(pipe[0], text.data(), text.size()) : moved;
  }
  return ::read(fd, text.data(), text.size());
}

bool waits_in_kernel(pid_t task) {
  std::ifstream file("/proc/self/task/" + std::to_string(task) + "/wchan");
  std::string where;
  std::getline(file, where);
  return !where.empty() && where != "0";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  auto ends = make(argv[1]);
  if (ends.from < 0 || ends.to < 0) return 3;
  const std::string side = argv[2], how = argv[3], text = argv[4];
  std::string got(64, '\0');
  long result = 0;
  int error = 0;
  if (side == "send") {
    result = send_by(how, ends, text);
    error = result < 0 ? errno : 0;
    const auto n = result > 0 ? ::read(ends.to, got.data(), got.size()) : 0;
    got.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  } else {
    std::thread late;
    const auto plain = std::string(argv[1]) == "pipe" ? "write" : "send";
    const auto receiver = ::gettid();
    const std::string when = argc > 5 ? argv[5] : "";
    if (when == "late")
      late = std::thread([&] {
        while (!waits_in_kernel(receiver)) std::this_thread::yield();
        send_by(plain, ends, text);
      });
    else if (when.empty())
      send_by(plain, ends, text);
    result = receive_by(how, ends.to, got);
    error = result < 0 ? errno : 0;
    got.resize(result > 0 ? static_cast<std::size_t>(result) : 0);
    if (late.joinable()) late.join();
  }
  std::printf("%s %ld %d %s\n", how.c_str(), result, error, got.c_str());
  return 0;
}
