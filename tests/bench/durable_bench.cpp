// What a durable image costs a leaf: at its start, at each sync, and at a power loss. Everything in memory, like a
// leaf's.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/unique_fd.hpp"
#include "node/syscalls/durable_image.hpp"

namespace {

namespace fs = std::filesystem;
using leafcutter::base::UniqueFd;
using leafcutter::node::DurableImage;
using Capture = DurableImage::Capture;

constexpr std::size_t megabyte = 1024 * 1024;

template <class T>
void bench_need(const T& done, const std::string& what) {
  if (!done) throw std::runtime_error(what);
}

struct BenchFolder {
  BenchFolder() {
    auto form = std::string(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/leafcutter-bench-XXXXXX";
    bench_need(::mkdtemp(form.data()), form);
    path = form;
    fs::create_directory(data());
  }
  ~BenchFolder() { fs::remove_all(path); }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  std::string data() const { return path + "/data"; }
  std::string image() const { return path + "/image"; }
  std::string file(int i) const { return data() + "/d" + std::to_string(i % 20) + "/f" + std::to_string(i); }

  void fill(int files, std::size_t bytes) const {
    for (int i = 0; i < 20; ++i) fs::create_directory(data() + "/d" + std::to_string(i));
    const std::string content(bytes, 'x');
    for (int i = 0; i < files; ++i) put(file(i), 0, content);
  }
  static void put(const std::string& path, std::size_t at, const std::string& bytes) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    bench_need(
        ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(bytes.size()),
        path);
  }
  DurableImage start(Capture capture = Capture::at_start) const {
    auto image_made = DurableImage::create(data(), image(), capture);
    bench_need(image_made, "create");
    return std::move(*image_made);
  }

  std::string path;
};

/// A folder like that of a fresh PostgreSQL cluster.
void start_with_40_megabytes(benchmark::State& state) {
  const BenchFolder folder;
  folder.fill(1000, 40 * 1024);
  for (auto _ : state) {
    const auto image = folder.start(state.range(0) == 0 ? Capture::at_start : Capture::before_change);
    state.PauseTiming();
    fs::remove_all(folder.image());
    state.ResumeTiming();
  }
}
BENCHMARK(start_with_40_megabytes)->ArgName("before_change")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void sync_of_a_file(benchmark::State& state, std::size_t changed_bytes, bool append) {
  const BenchFolder folder;
  const auto path = folder.data() + "/a";
  auto size = static_cast<std::size_t>(state.range(0)) * megabyte;
  BenchFolder::put(path, 0, std::string(size, 'x'));
  auto image = folder.start();
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  char fill = 'a';
  for (auto _ : state) {
    if (changed_bytes > 0) {
      fill = fill == 'z' ? 'a' : static_cast<char>(fill + 1);
      const auto at = append ? size : size / 2;
      if (append) size += changed_bytes;
      BenchFolder::put(path, at, std::string(changed_bytes, fill));
    }
    bench_need(image.synced(fd.get(), true), "synced");
  }
}
BENCHMARK_CAPTURE(sync_of_a_file, unchanged, 0, false)
    ->ArgName("MB")
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sync_of_a_file, one_page, 4096, false)
    ->ArgName("MB")
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sync_of_a_file, appended_100_bytes, 100, true)
    ->ArgName("MB")
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->Unit(benchmark::kMicrosecond);

void write_of_a_range(benchmark::State& state) {
  const BenchFolder folder;
  const auto path = folder.data() + "/a";
  BenchFolder::put(path, 0, std::string(64 * megabyte, 'x'));
  auto image = folder.start();
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  for (auto _ : state) bench_need(image.written(fd.get(), 32 * megabyte, 8192, true), "written");
}
BENCHMARK(write_of_a_range)->Unit(benchmark::kMicrosecond);

void sync_of_a_new_file_among(benchmark::State& state) {
  const BenchFolder folder;
  folder.fill(static_cast<int>(state.range(0)), 100);
  auto image = folder.start();
  int i = 0;
  for (auto _ : state) {
    const auto path = folder.data() + "/d1/new" + std::to_string(i++);
    BenchFolder::put(path, 0, "bytes");
    bench_need(image.synced(path), "synced");
  }
}
BENCHMARK(sync_of_a_new_file_among)->ArgName("files")->Arg(100)->Arg(10'000)->Unit(benchmark::kMicrosecond);

/// Write aside, sync, rename over, sync the folder: its names change, and the file that was replaced is looked for.
void replacement_of_a_file_among(benchmark::State& state) {
  const BenchFolder folder;
  folder.fill(static_cast<int>(state.range(0)), 100);
  auto image = folder.start();
  for (auto _ : state) {
    const auto path = folder.file(1);
    BenchFolder::put(path + ".tmp", 0, "bytes");
    bench_need(image.synced(path + ".tmp"), "synced");
    fs::rename(path + ".tmp", path);
    bench_need(image.synced("d1"), "synced");
  }
}
BENCHMARK(replacement_of_a_file_among)->ArgName("files")->Arg(100)->Arg(10'000)->Unit(benchmark::kMicrosecond);

void power_loss_among(benchmark::State& state) {
  const BenchFolder folder;
  folder.fill(static_cast<int>(state.range(0)), 4096);
  auto image = folder.start();
  for (auto _ : state) {
    for (int i = 0; i < 100; ++i) BenchFolder::put(folder.file(i), 0, "changed");
    bench_need(image.power_loss(), "power loss");
  }
}
BENCHMARK(power_loss_among)->ArgName("files")->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
