// subject CALL COUNT: makes one system call COUNT times and prints nanoseconds a call.
//   cheap    getppid, the least that a call costs
//   pwrite   4 KiB into the file `subject.out` of the working folder
//   failing  connect on no descriptor: EBADF, or what a filter answers
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

template <class Call>
double nanoseconds_each(long count, Call call) {
  for (long i = 0; i < count / 10; ++i) call();
  const auto began = std::chrono::steady_clock::now();
  for (long i = 0; i < count; ++i) call();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count() /
         static_cast<double>(count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view what = argv[1];
  const auto count = std::atol(argv[2]);
  long wrong = 0;
  double each = 0;
  if (what == "cheap") {
    each = nanoseconds_each(count, [&] { wrong += ::syscall(SYS_getppid) <= 0; });
  } else if (what == "pwrite") {
    const int file = ::open("subject.out", O_WRONLY | O_CREAT, 0644);
    static std::array<char, 4096> block{};
    each = nanoseconds_each(count, [&] { wrong += ::pwrite(file, block.data(), block.size(), 0) != 4096; });
  } else {
    sockaddr address{};
    each = nanoseconds_each(count, [&] { wrong += ::syscall(SYS_connect, -1, &address, sizeof address) != -1; });
    std::printf("%d ", errno);
  }
  std::printf("%.1f\n", each);
  return wrong == 0 ? 0 : 1;
}
