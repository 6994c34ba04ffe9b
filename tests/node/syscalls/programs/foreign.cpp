// foreign HOW: makes a system call by another door: "i386" (int 0x80), "i386-thread" (the same in a second thread),
// "x32" (the x32 bit), "none" (-1, which is no call), "io-uring" (io_uring_setup, three times). Prints what it
// returned.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

namespace {

long call_as_i386() {
  constexpr long getpid_of_i386 = 20;
  long result = 0;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(getpid_of_i386) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string how = argv[1];
  long result = 0;
  if (how == "i386") {
    result = call_as_i386();
  } else if (how == "i386-thread") {
    std::thread([&] { result = call_as_i386(); }).join();
  } else if (how == "x32") {
    result = ::syscall(0x40000000 | SYS_getpid);
  } else if (how == "none") {
    result = ::syscall(-1);
  } else {
    char parameters[256] = {};
    for (int i = 0; i < 3; ++i) result = ::syscall(SYS_io_uring_setup, 1, parameters);
  }
  const auto line = (result < 0 ? "error " + std::to_string(errno) : std::string("ran")) + "\n";
  return ::write(1, line.data(), line.size()) > 0 ? 0 : 1;
}
