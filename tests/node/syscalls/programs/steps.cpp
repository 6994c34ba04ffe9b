// steps STEP...: makes the system calls it is told to, one step an argument ("rename,a,b"), and prints a line for each:
// the verb, what the call returned, errno, and what was read. Raw calls where glibc would choose another one.
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

/// A step's words; one that is missing ends the program.
class Words {
 public:
  explicit Words(const std::string& step) {
    std::istringstream in(step);
    for (std::string word; std::getline(in, word, ',');) words_.push_back(word);
  }
  const std::string& operator[](std::size_t index) const { return words_.at(index); }
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
};

struct Fd {
  explicit Fd(int given) : fd(given) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    const auto kept = errno;
    ::close(fd);
    errno = kept;
  }
  int fd;
};

int appending(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644); }
int writing(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CREAT, 0644); }
int folder(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY); }
unsigned long octal(const std::string& text) { return std::strtoul(text.c_str(), nullptr, 8); }

std::vector<iovec> halves(std::string& text) {
  const auto half = text.size() / 2;
  return {{text.data(), half}, {text.data() + half, text.size() - half}};
}

long vector_write(const Words& w) {
  auto text = w[2];
  const auto parts = halves(text);
  if (w[0] == "writev") return ::writev(Fd(appending(w[1])).fd, parts.data(), 2);
  const Fd file(writing(w[1]));
  const auto at = std::stol(w[3]);
  if (w[0] == "pwritev") return ::pwritev(file.fd, parts.data(), 2, at);
  return ::pwritev2(file.fd, parts.data(), 2, at, RWF_DSYNC);
}

long open_with_openat2(const Words& w) {
  open_how how{};
  how.flags = O_WRONLY | O_CREAT;
  how.mode = 0640;
  return ::syscall(SYS_openat2, Fd(folder(w[1])).fd, w[2].c_str(), &how, sizeof how);
}

/// The path's last byte is the last one before memory that is not mapped.
long open_at_the_edge(const Words& w) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* memory =
      static_cast<char*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::munmap(memory + page, page);
  auto* path = memory + page - w[1].size() - 1;
  std::memcpy(path, w[1].c_str(), w[1].size() + 1);
  return ::open(path, O_WRONLY | O_CREAT, 0644);
}

long sync_mapping(const Words& w) {
  const Fd file(writing(w[1]));
  if (::ftruncate(file.fd, static_cast<off_t>(w[2].size())) != 0) return -1;
  auto* memory = ::mmap(nullptr, w[2].size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  std::memcpy(memory, w[2].data(), w[2].size());
  return ::msync(memory, w[2].size(), MS_SYNC);
}

long copy(const Words& w) {
  const Fd in(::open(w[1].c_str(), O_RDONLY)), out(writing(w[2]));
  if (w[0] == "sendfile") return ::sendfile(out.fd, in.fd, nullptr, 1 << 20);
  return ::copy_file_range(in.fd, nullptr, out.fd, nullptr, 1 << 20, 0);
}

/// With offsets by address, which the call moves on: -2 when it did not. The source's is the third word, or 0.
long copy_at(const Words& w) {
  const Fd in(::open(w[1].c_str(), O_RDONLY)), out(writing(w[2]));
  const off_t first = w.size() > 3 ? std::stol(w[3]) : 0;
  off_t from = first, to = 0;
  if (w[0] == "sendfile-at") {
    const auto sent = ::sendfile(out.fd, in.fd, &from, 1 << 20);
    return sent < 0 || sent == from - first ? sent : -2;
  }
  const auto copied = ::copy_file_range(in.fd, &from, out.fd, &to, 1 << 20, 0);
  return copied < 0 || (copied == from - first && copied == to) ? copied : -2;
}

long through_pipe(const Words& w) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const Fd in(ends[0]), out(ends[1]);
  if (w[0] == "pipe") return ::write(out.fd, w[1].data(), w[1].size());
  if (::write(out.fd, w[2].data(), w[2].size()) < 0) return -1;
  return ::splice(in.fd, nullptr, Fd(writing(w[1])).fd, nullptr, w[2].size(), 0);
}

std::string& got();

/// "splice-out,PATH,COUNT": from a file into a pipe; what arrived there is what is got.
long splice_out(const Words& w) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const Fd in(ends[0]), out(ends[1]), file(::open(w[1].c_str(), O_RDONLY));
  const auto moved = ::splice(file.fd, nullptr, out.fd, nullptr, std::stoul(w[2]), 0);
  if (moved <= 0) return moved;
  got().resize(64);
  got().resize(static_cast<std::size_t>(::read(in.fd, got().data(), got().size())));
  return moved;
}

long write_removed(const Words& w) {
  const Fd file(writing(w[1]));
  ::unlink(w[1].c_str());
  return ::write(file.fd, w[2].data(), w[2].size());
}

/// What the last step read.
std::string& got() {
  static std::string text;
  return text;
}

/// "pread,PATH,COUNT,OFFSET": into two buffers where the call takes several.
long read_some(const Words& w) {
  const Fd file(::open(w[1].c_str(), O_RDONLY));
  std::string text(std::stoul(w[2]), '\0');
  const auto at = w.size() > 3 ? std::stol(w[3]) : 0;
  const auto parts = halves(text);
  long result = 0;
  if (w[0] == "pread") result = ::pread(file.fd, text.data(), text.size(), at);
  if (w[0] == "preadv") result = ::preadv(file.fd, parts.data(), 2, at);
  if (w[0] == "preadv2") result = ::preadv2(file.fd, parts.data(), 2, at, 0);
  if (w[0] == "readv") result = ::readv(file.fd, parts.data(), 2);
  if (w[0] == "readn") {
    result = ::read(file.fd, text.data(), text.size());
    if (result >= 0 && ::lseek(file.fd, 0, SEEK_CUR) != result) return -2;  // the file's position has moved with it
  }
  got() = text.substr(0, static_cast<std::size_t>(result > 0 ? result : 0));
  return result;
}

/// "stdin,COUNT": from where others have it open, too.
long read_input(const Words& w) {
  got().resize(std::stoul(w[1]));
  const auto result = ::read(0, got().data(), got().size());
  got().resize(static_cast<std::size_t>(result > 0 ? result : 0));
  return result;
}

long write_synchronously(const Words& w) {
  const auto flag = w[0] == "write-sync" ? O_SYNC : O_DSYNC;
  const Fd file(::open(w[1].c_str(), O_WRONLY | O_CREAT | O_APPEND | flag, 0644));
  return ::write(file.fd, w[2].data(), w[2].size());
}

/// "sleep,MS", "clock-sleep,MS", "sleep-until,MS": on the monotonic clock.
long sleep_by(const Words& w) {
  const auto ns = std::stoll(w[1]) * 1'000'000;
  timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  if (w[0] == "sleep") return ::syscall(SYS_nanosleep, &time, nullptr);
  if (w[0] == "sleep-until") {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    time.tv_sec += now.tv_sec;
    time.tv_nsec += now.tv_nsec;
    if (time.tv_nsec >= 1'000'000'000) {
      ++time.tv_sec;
      time.tv_nsec -= 1'000'000'000;
    }
  }
  return ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, w[0] == "sleep-until" ? TIMER_ABSTIME : 0, &time, nullptr);
}

long read_clock(const Words& /*w*/) {
  timespec time{};
  return ::syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &time);
}

long write_event(const Words& /*w*/) {
  const Fd event(::eventfd(0, 0));
  const std::uint64_t one = 1;
  return ::write(event.fd, &one, sizeof one);
}

long write_terminal(const Words& w) {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  return ::write(terminal.fd, w[1].data(), w[1].size());
}

/// "through-one-descriptor,A,B,N": N bytes into A, B, a pipe and A again, each by a write of its own and all by the
/// same number; then as many again when A has become "A-renamed". What arrived in the pipe is what is got.
long write_through_one_descriptor(const Words& w) {
  const auto count = std::stol(w[3]);
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const Fd a(appending(w[1])), b(appending(w[2])), in(ends[0]), out(ends[1]), one(::dup(a.fd));
  long written = 0;
  const auto write_all = [&](int to) {
    if (::dup2(to, one.fd) < 0) return;
    for (long i = 0; i < count; ++i) written += ::write(one.fd, "x", 1);
  };
  for (const int to : {a.fd, b.fd, out.fd, a.fd}) write_all(to);
  if (::rename(w[1].c_str(), (w[1] + "-renamed").c_str()) != 0) return -1;
  write_all(a.fd);
  got() = std::to_string(::read(in.fd, std::string(1 << 16, '\0').data(), 1 << 16));
  return written;
}

const std::map<std::string, std::function<long(const Words&)>>& verbs() {
  static volatile std::uintptr_t nowhere = 8;                 // volatile: the compiler would warn of what is meant here
  static auto* const bad = reinterpret_cast<char*>(nowhere);  // NOLINT(performance-no-int-to-ptr)
  static const std::vector<std::pair<std::string, std::function<long(const Words&)>>> listed = {
      {"write", [](const Words& w) { return ::write(Fd(appending(w[1])).fd, w[2].data(), w[2].size()); }},
      {"pwrite",
       [](const Words& w) { return ::pwrite(Fd(writing(w[1])).fd, w[2].data(), w[2].size(), std::stol(w[3])); }},
      {"writev", vector_write},
      {"pwritev", vector_write},
      {"pwritev2", vector_write},
      {"read",
       [](const Words& w) {
         char c;
         return ::read(Fd(::open(w[1].c_str(), O_RDONLY)).fd, &c, 1);
       }},
      {"readn", read_some},
      {"pread", read_some},
      {"readv", read_some},
      {"preadv", read_some},
      {"preadv2", read_some},
      {"stdin", read_input},
      {"write-sync", write_synchronously},
      {"write-dsync", write_synchronously},
      {"sleep", sleep_by},
      {"clock-sleep", sleep_by},
      {"sleep-until", sleep_by},
      {"clock", read_clock},
      {"eventfd", write_event},
      {"terminal", write_terminal},
      {"sync",
       [](const Words&) {
         ::sync();
         return 0L;
       }},
      {"syncfs", [](const Words& w) { return long{::syncfs(Fd(folder(w[1])).fd)}; }},
      {"sync-range",
       [](const Words& w) {
         return long{::sync_file_range(Fd(writing(w[1])).fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)};
       }},
      {"symlinkat", [](const Words& w) { return long{::symlinkat(w[1].c_str(), Fd(folder(w[2])).fd, w[3].c_str())}; }},
      {"chroot", [](const Words& w) { return long{::chroot(w[1].c_str())}; }},
      {"fsync", [](const Words& w) { return long{::fsync(Fd(::open(w[1].c_str(), O_RDONLY)).fd)}; }},
      {"fdatasync", [](const Words& w) { return long{::fdatasync(Fd(writing(w[1])).fd)}; }},
      {"rename", [](const Words& w) { return ::syscall(SYS_rename, w[1].c_str(), w[2].c_str()); }},
      {"renameat",
       [](const Words& w) {
         const Fd d(folder(w[1]));
         return long{::renameat(d.fd, w[2].c_str(), d.fd, w[3].c_str())};
       }},
      {"renameat2",
       [](const Words& w) {
         return long{::renameat2(AT_FDCWD, w[1].c_str(), AT_FDCWD, w[2].c_str(), RENAME_NOREPLACE)};
       }},
      {"link", [](const Words& w) { return ::syscall(SYS_link, w[1].c_str(), w[2].c_str()); }},
      {"linkat", [](const Words& w) { return long{::linkat(AT_FDCWD, w[1].c_str(), AT_FDCWD, w[2].c_str(), 0)}; }},
      {"unlink", [](const Words& w) { return ::syscall(SYS_unlink, w[1].c_str()); }},
      {"unlinkat", [](const Words& w) { return long{::unlinkat(Fd(folder(w[1])).fd, w[2].c_str(), 0)}; }},
      {"rmdir", [](const Words& w) { return ::syscall(SYS_rmdir, w[1].c_str()); }},
      {"mkdir", [](const Words& w) { return ::syscall(SYS_mkdir, w[1].c_str(), octal(w[2])); }},
      {"mkdirat", [](const Words& w) { return long{::mkdirat(Fd(folder(w[1])).fd, w[2].c_str(), 0777)}; }},
      {"creat", [](const Words& w) { return ::syscall(SYS_creat, w[1].c_str(), 0644) >= 0 ? 0L : -1L; }},
      {"open",
       [](const Words& w) {
         return ::syscall(SYS_open, w[1].c_str(), O_WRONLY | O_CREAT | O_TRUNC, octal(w[2])) >= 0 ? 0L : -1L;
       }},
      {"openat",
       [](const Words& w) {
         return ::openat(Fd(folder(w[1])).fd, w[2].c_str(), O_WRONLY | O_CREAT, 0666) >= 0 ? 0L : -1L;
       }},
      {"openat2", [](const Words& w) { return open_with_openat2(w) >= 0 ? 0L : -1L; }},
      {"edge", [](const Words& w) { return open_at_the_edge(w) >= 0 ? 0L : -1L; }},
      {"truncate", [](const Words& w) { return long{::truncate(w[1].c_str(), std::stol(w[2]))}; }},
      {"ftruncate", [](const Words& w) { return long{::ftruncate(Fd(writing(w[1])).fd, std::stol(w[2]))}; }},
      {"fallocate", [](const Words& w) { return long{::fallocate(Fd(writing(w[1])).fd, 0, 0, std::stol(w[2]))}; }},
      {"msync", sync_mapping},
      {"sendfile", copy},
      {"copy", copy},
      {"copy-at", copy_at},
      {"sendfile-at", copy_at},
      {"pipe", through_pipe},
      {"splice", through_pipe},
      {"splice-out", splice_out},
      {"write-removed", write_removed},
      {"through-one-descriptor", write_through_one_descriptor},
      {"random",
       [](const Words&) {
         char byte = 0;
         return ::syscall(SYS_getrandom, &byte, 1, 0);
       }},
      {"handle",  // SIGUSR1 interrupts, and calls restart
       [](const Words&) {
         struct sigaction action {};
         action.sa_handler = [](int) {};
         action.sa_flags = SA_RESTART;
         return long{::sigaction(SIGUSR1, &action, nullptr)};
       }},
      {"chdir", [](const Words& w) { return long{::chdir(w[1].c_str())}; }},
      {"umask",
       [](const Words& w) {
         ::umask(static_cast<mode_t>(octal(w[1])));
         return 0L;
       }},
      {"bad-path", [](const Words&) { return ::syscall(SYS_open, bad, O_RDONLY); }},
      {"bad-write", [](const Words& w) { return ::write(Fd(appending(w[1])).fd, bad, 10); }},
      {"bad-read", [](const Words& w) { return ::read(Fd(::open(w[1].c_str(), O_RDONLY)).fd, bad, 10); }},
      {"bad-vector", [](const Words& w) { return ::syscall(SYS_writev, Fd(appending(w[1])).fd, bad, 2); }},
      {"bad-descriptor", [](const Words&) { return ::write(999, "x", 1); }},
  };
  static const std::map<std::string, std::function<long(const Words&)>> all(listed.begin(), listed.end());
  if (all.size() != listed.size()) std::abort();  // two of one name: the second would never be taken
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const Words words(argv[i]);
    errno = 0;
    got().clear();
    const auto result = verbs().at(words[0])(words);
    const auto error = result < 0 ? errno : 0;
    const auto line = words[0] + " " + std::to_string(result) + " " + std::to_string(error) +
                      (got().empty() ? "" : " " + got()) + "\n";
    if (::write(1, line.data(), line.size()) < 0) return 1;
  }
  return 0;
}
