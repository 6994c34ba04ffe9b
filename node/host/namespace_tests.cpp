#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

#include "node/host/tests.hpp"

namespace leafcutter::node {
namespace {

bool write_text(const char* path, const char* text) {
  const auto fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto length = static_cast<ssize_t>(std::strlen(text));
  const auto wrote = ::write(fd, text, static_cast<std::size_t>(length));
  const auto error = errno;
  ::close(fd);
  errno = error;
  return wrote == length;
}

/// A user namespace in which we are root, and `more` namespaces that belong to it.
bool enter(TestReport& report, int more) {
  const auto uid = ::getuid();
  const auto gid = ::getgid();
  if (::unshare(CLONE_NEWUSER) != 0) return report.failed("unshare a user namespace"), false;
  char map[64];
  std::snprintf(map, sizeof map, "0 %u 1", uid);
  if (!write_text("/proc/self/uid_map", map)) return report.failed("write uid_map"), false;
  if (!write_text("/proc/self/setgroups", "deny")) return report.failed("write setgroups"), false;
  std::snprintf(map, sizeof map, "0 %u 1", gid);
  if (!write_text("/proc/self/gid_map", map)) return report.failed("write gid_map"), false;
  if (::unshare(more) != 0) return report.failed("unshare further namespaces inside a user namespace"), false;
  return true;
}

void user_namespace(TestReport& report, void*) {
  if (!enter(report, CLONE_NEWUTS)) return;
  // A host may hand out the namespace and withhold its rights; only using one of them shows.
  static constexpr char name[] = "leaf-self-test";
  char found[64] = {};
  if (::sethostname(name, sizeof name - 1) != 0) return report.failed("use the rights of a user namespace");
  if (::gethostname(found, sizeof found) != 0 || std::strcmp(found, name) != 0)
    return report.failed("gethostname", EIO);
  if (::getuid() != 0) return report.failed("be user 0 inside", EIO);
  report.saw("is user 0 in a user namespace of its own and renamed the host there");
}

bool loopback_up(int socket) {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

void network_namespace(TestReport& report, void*) {
  if (!enter(report, CLONE_NEWNET)) return;
  const auto server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server < 0 || client < 0) return report.failed("make sockets");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(7001);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  // A network of its own starts with its loopback down: if this connected, it would be the host's.
  if (::connect(client, at, sizeof address) == 0) return report.failed("have a network of its own", EEXIST);
  if (!loopback_up(server)) return report.failed("bring the loopback interface up");
  if (::bind(server, at, sizeof address) != 0 || ::listen(server, 1) != 0)
    return report.failed("listen on 127.0.0.1:7001");
  const auto dialled = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(dialled, at, sizeof address) != 0) return report.failed("connect to 127.0.0.1:7001");
  const auto accepted = ::accept(server, nullptr, nullptr);
  char byte = 0;
  if (::send(dialled, "x", 1, MSG_NOSIGNAL) != 1 || ::recv(accepted, &byte, 1, 0) != 1 || byte != 'x')
    return report.failed("pass a byte over 127.0.0.1:7001", EIO);
  report.saw("a byte went through 127.0.0.1:7001 of a network of its own");
}

/// In the first process of a new pid namespace.
void mount_own_proc(TestReport& report) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return report.failed("make the mounts private");
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return report.failed("mount a new /proc");
  char self[16] = {};
  if (::readlink("/proc/self", self, sizeof self - 1) < 0) return report.failed("read /proc/self");
  if (std::strcmp(self, "1") != 0) return report.failed("be process 1 in the new /proc", EIO);
  report.saw("is process 1 in a /proc of its own");
}

void mount_proc(TestReport& report, void*) {
  if (!enter(report, CLONE_NEWPID | CLONE_NEWNS)) return;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return report.failed("pipe");
  const auto first = ::fork();
  if (first < 0) return report.failed("fork into a pid namespace");
  if (first == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    TestReport inner;
    mount_own_proc(inner);
    ::_exit(::write(ends[1], &inner, sizeof inner) == sizeof inner ? 0 : 1);
  }
  ::close(ends[1]);
  if (::read(ends[0], &report, sizeof report) != sizeof report) report.failed("hear from the pid namespace", EIO);
  ::waitpid(first, nullptr, 0);
}

void read_only_root(TestReport& report, void*) {
  if (!enter(report, CLONE_NEWNS)) return;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return report.failed("make the mounts private");
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attributes, sizeof attributes) != 0)
    return report.failed("make every mount read-only (mount_setattr)");
  for (const auto* path : {"/leafcutter-self-test", "/tmp/leafcutter-self-test"}) {
    if (::mkdir(path, 0700) == 0) {
      ::rmdir(path);
      return report.failed("find the file system read-only", EEXIST);
    }
    if (errno != EROFS) return report.failed("find the file system read-only");
  }
  report.saw("a folder could not be made in / and /tmp: the file system is read-only");
}

/// Set ahead, the clock of a child must be; a clock that nobody set shows that the namespace is a new one.
void time_namespace(TestReport& report, void*) {
  static constexpr time_t ahead = 1000;
  if (!enter(report, CLONE_NEWTIME)) return;
  if (!write_text("/proc/self/timens_offsets", "monotonic 1000 0\nboottime 1000 0\n"))
    return report.failed("move the clocks of a time namespace");
  timespec outside{};
  ::clock_gettime(CLOCK_MONOTONIC, &outside);
  const auto child = ::_Fork();
  if (child < 0) return report.failed("fork into a time namespace");
  if (child == 0) {
    timespec inside{};
    ::_exit(::clock_gettime(CLOCK_MONOTONIC, &inside) == 0 && inside.tv_sec >= outside.tv_sec + ahead ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return report.failed("see a clock that was moved", EIO);
  report.saw("a process saw a monotonic clock 1000 s ahead");
}

/// As a service is: in a user namespace where nobody else is counted.
void process_limit(TestReport& report, void*) {
  if (!enter(report, CLONE_NEWUTS)) return;
  const rlimit alone{1, 1};
  if (::setrlimit(RLIMIT_NPROC, &alone) != 0) return report.failed("set RLIMIT_NPROC");
  const auto child = ::_Fork();
  if (child == 0) ::_exit(0);
  if (child < 0 && errno == EAGAIN) return report.saw("a second process was refused to a user with a limit of one");
  if (child < 0) return report.failed("fork under a limit of processes");
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  report.failed("have a second process refused under a limit of one", EOPNOTSUPP);
}

}  // namespace

TestReport test_user_namespace() { return run_self_test(user_namespace); }
TestReport test_network_namespace() { return run_self_test(network_namespace); }
TestReport test_mount_proc() { return run_self_test(mount_proc); }
TestReport test_read_only_root() { return run_self_test(read_only_root); }
TestReport test_time_namespace() { return run_self_test(time_namespace); }
TestReport test_process_limit() { return run_self_test(process_limit); }

}  // namespace leafcutter::node
