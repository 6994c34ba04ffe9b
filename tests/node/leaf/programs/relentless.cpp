// relentless MARKER THREADS: writes one byte without pause, from so many threads, and counts in the file `counters`,
// which it maps: calls made, and those of them that failed with ENOSYS, as they would if nobody answered for them any
// more.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

struct Counters {
  std::atomic<std::uint64_t> calls, unanswered;
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int file = ::open("counters", O_RDWR | O_CREAT, 0644), out = ::open("out", O_WRONLY | O_CREAT, 0644);
  if (file < 0 || out < 0 || ::ftruncate(file, sizeof(Counters)) != 0) return 3;
  auto* memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 4;
  auto& counters = *static_cast<Counters*>(memory);
  const auto write_on = [&] {
    for (;;) {
      if (::pwrite(out, "x", 1, 0) < 0 && errno == ENOSYS) ++counters.unanswered;
      ++counters.calls;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < std::atoi(argv[2]); ++i) threads.emplace_back(write_on);
  write_on();
}
