// What system call rules cost, beside no filter at all and beside strace doing the same job. Every round measures every
// case once, one after the other, so that a noisy machine disturbs all alike; medians over the rounds are compared.
//   bench_syscalls [ROUNDS] [only GROUP]
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "program.hpp"

namespace leafcutter::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Below strace's greatest `when`, so that its rule counts and never strikes, as ours does.
constexpr int selected_calls = 58000;
constexpr int cheap_calls = 1000000;
constexpr int redis_requests = 3000;

/// "pwrite64=EIO path=... #1073741824", as `leafcutter exec` takes it; no path: files other than the system's.
scenarios::Fault rule(const std::string& family, const std::string& call, const std::string& path) {
  scenarios::Aim aim;
  aim.call = call;
  aim.path = path;
  aim.occurrences = {scenarios::Occurrences::Which::nth, 1u << 30};
  return {"errno", {"subject", family, ""}, 1, {{"error", "EIO"}}, aim};
}

/// strace doing what our rules do here: it counts the calls, of this file if they are aimed at one, and lets them
/// through. It stops at every call ("plain"), or with `--seccomp-bpf` only at the chosen ones.
std::vector<std::string> under_strace(bool plain, const std::string& calls, const std::string& file,
                                      std::vector<std::string> argv) {
  std::vector<std::string> all = {"strace", "-f", "-qq", "-o", "/dev/null"};
  if (!plain) all.emplace_back("--seccomp-bpf");
  if (!file.empty()) all.insert(all.end(), {"-P", file});
  all.insert(all.end(), {"-e", "trace=" + calls, "-e", "inject=" + calls + ":error=EIO:when=65535"});
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

/// Of this process, its threads among them the supervisor's, and of all that it started and that ended.
double processor_nanoseconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const auto& time : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  }
  return sum;
}

/// While it lives, this thread and what it starts stay on one processor.
class Pinned {
 public:
  explicit Pinned(bool wanted) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    if (!wanted) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    int cpu = 0;
    while (CPU_ISSET(cpu, &before_) == 0) ++cpu;
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~Pinned() { ::sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_{};
};

class Bench {
 public:
  Bench(std::string folder, std::string subject) : folder_(std::move(folder)), subject_(std::move(subject)) {}

  void round(const std::string& only) {
    const auto wanted = [&](const char* group) { return only.empty() || only == group; };
    if (wanted("unselected")) unselected();
    if (wanted("selected")) selected();
    if (wanted("kernel")) kernel();
    if (wanted("redis")) redis();
  }
  void print(int rounds) const;

 private:
  Run subject(const std::string& call, int count) const {
    return {.argv = {subject_, call, std::to_string(count)}, .folder = folder_};
  }
  void note(const std::string& name, double value) { values_[name].push_back(value); }
  double median(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return 0;
    auto sorted = found->second;
    std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2));
    return sorted[sorted.size() / 2];
  }

  /// Nanoseconds a call, which the subject says last.
  void measure(const std::string& name, const Run& run, bool pinned = true, std::uint64_t at_least_counted = 0) {
    const Pinned here(pinned);
    const auto before = processor_nanoseconds();
    Program program(run);
    const auto said = program.output();
    const auto spent = processor_nanoseconds() - before;
    const auto number = said.rfind(' ') == std::string::npos ? said : said.substr(said.rfind(' '));
    if (said.empty() || program.notified() < at_least_counted) {
      std::fprintf(stderr, "bench_syscalls: %s measured nothing\n", name.c_str());
      std::exit(3);
    }
    note(name, std::atof(number.c_str()));
    note(name + " cpu", spent / (1.1 * std::atof(run.argv.back().c_str())));
  }

  void unselected();
  void selected();
  void kernel();
  void redis();
  void measure_redis(const std::string& name, Run run);
  void row(const char* what, const std::string& base, const std::string& ours, const std::string& strace,
           const std::string& filtered, const char* target) const;

  std::string folder_, subject_;
  std::map<std::string, std::vector<double>> values_;
};

void Bench::unselected() {
  for (const std::string call : {"cheap", "pwrite"}) {
    const auto count = call == "cheap" ? cheap_calls : cheap_calls / 5;
    measure(call + " bare", subject(call, count));
    auto filtered = subject(call, count);
    filtered.filter.families = {"fsync", "rename", "open"};
    measure(call + " unselected", filtered);
    auto least = subject(call, count);
    least.filter_that_allows = true;
    measure(call + " allowed", least);
  }
}

void Bench::selected() {
  for (const bool pinned : {true, false}) {
    const std::string where = pinned ? " pinned" : " free";
    measure("pwrite" + where, subject("pwrite", selected_calls), pinned);
    for (const bool by_path : {false, true}) {
      const auto kind = (by_path ? " by path" : "") + where;
      auto ruled = subject("pwrite", selected_calls);
      ruled.filter.families = {"write"};
      ruled.plan.faults = {rule("write", "pwrite64", by_path ? "subject.out" : "")};
      measure("pwrite ruled" + kind, ruled, pinned, selected_calls);
      for (const bool plain : {true, false}) {
        auto traced = subject("pwrite", selected_calls);
        traced.argv = under_strace(plain, "pwrite64", by_path ? folder_ + "/subject.out" : "", traced.argv);
        measure((plain ? "pwrite traced" : "pwrite filtered") + kind, traced, pinned);
      }
    }
  }
}

void Bench::kernel() {
  measure("failing bare", subject("failing", cheap_calls));
  auto answered = subject("failing", cheap_calls);
  answered.filter = {.families = {"connect"}, .answers = {{"connect", 111}}};
  measure("failing in kernel", answered);
}

/// Connects until the server listens; false after 10 s.
bool listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  for (const auto deadline = Clock::now() + std::chrono::seconds(10); Clock::now() < deadline;
       std::this_thread::yield()) {
    const base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return true;
  }
  return false;
}

/// Microseconds a SET, each of which is synced to the append-only file before its answer.
void Bench::measure_redis(const std::string& name, Run run) {
  static int next = 0;
  run.folder = folder_ + "/redis-" + std::to_string(next++);
  std::filesystem::create_directory(run.folder);
  const auto socket = run.folder + "/s";
  run.argv.insert(run.argv.end(), {"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "yes",
                                   "--appendfsync", "always", "--loglevel", "warning"});
  double result = 0;
  const auto before = processor_nanoseconds();
  {
    Program server(run);
    if (!listens(socket)) {
      std::fprintf(stderr, "bench_syscalls: redis-server does not listen on %s\n", socket.c_str());
      std::exit(3);
    }
    Program client({.argv = {"redis-benchmark", "-s", socket, "-t", "set", "-n", std::to_string(redis_requests), "-c",
                             "1", "--csv"},
                    .folder = folder_});
    const auto text = client.output();
    const auto line = text.find("\"SET\",\"");
    if (line != std::string::npos) result = 1e6 / std::atof(text.c_str() + line + 7);
    Program stop({.argv = {"redis-cli", "-s", socket, "shutdown", "nosave"}, .folder = folder_});
    stop.output();
    server.output();
    if (!run.filter.empty() && server.notified() < redis_requests) result = 0;
  }
  if (result <= 0) {
    std::fprintf(stderr, "bench_syscalls: redis-benchmark measured nothing\n");
    std::exit(3);
  }
  note(name + " cpu", (processor_nanoseconds() - before) / 1000 / redis_requests);
  note(name, result);
  std::filesystem::remove_all(run.folder);
}

void Bench::redis() {
  measure_redis("redis bare", {.argv = {"redis-server"}, .folder = {}});
  Run ruled{.argv = {"redis-server"}, .folder = {}};
  ruled.filter.families = {"fsync"};
  ruled.plan.faults = {rule("fsync", "", "")};
  measure_redis("redis ruled", ruled);
  for (const bool plain : {true, false})
    measure_redis(plain ? "redis traced" : "redis filtered",
                  {.argv = under_strace(plain, "fsync,fdatasync", "", {"redis-server"}), .folder = {}});
}

void Bench::row(const char* what, const std::string& base, const std::string& ours, const std::string& strace,
                const std::string& filtered, const char* target) const {
  if (!values_.contains(base)) return;
  for (const std::string kind : {"", " cpu"}) {
    const auto* unit = kind.empty() ? "" : ", processor time";
    const auto bare = median(base + kind), with = median(ours + kind), traced = median(strace + kind);
    if (strace.empty())
      std::printf("| %s%s | %.0f | %.0f | | | %.2f x no filter | %s |\n", what, unit, bare, with, with / bare, target);
    else
      std::printf("| %s%s | %.1f | %.1f | %.1f | %.1f | strace costs %.1f x, its overhead is %.1f x | %s |\n", what,
                  unit, bare, with, traced, median(filtered + kind), traced / with, (traced - bare) / (with - bare),
                  target);
  }
}

void Bench::print(int rounds) const {
  std::printf(
      "| %d rounds, interleaved, medians | no filter | with rules | strace -f -e inject | the same with --seccomp-bpf "
      "| | wanted |\n",
      rounds);
  std::printf("|---|---|---|---|---|---|---|\n");
  row("call that no rule selects: getppid, ns", "cheap bare", "cheap unselected", "", "", "1.10 x");
  row("the same under a filter of one instruction, allow", "cheap bare", "cheap allowed", "", "", "");
  row("call that no rule selects: 4 KiB pwrite, ns", "pwrite bare", "pwrite unselected", "", "", "1.10 x");
  row("the same under a filter of one instruction, allow", "pwrite bare", "pwrite allowed", "", "", "");
  row("always-error in the kernel: failing connect, ns", "failing bare", "failing in kernel", "", "", "1.2 x");
  row("selected and let through, on one processor: 4 KiB pwrite to any file, ns", "pwrite pinned",
      "pwrite ruled pinned", "pwrite traced pinned", "pwrite filtered pinned", "3 x");
  row("the same by path (strace -P), ns", "pwrite pinned", "pwrite ruled by path pinned",
      "pwrite traced by path pinned", "pwrite filtered by path pinned", "3 x");
  row("to any file, wherever they run, ns", "pwrite free", "pwrite ruled free", "pwrite traced free",
      "pwrite filtered free", "");
  row("by path, wherever they run, ns", "pwrite free", "pwrite ruled by path free", "pwrite traced by path free",
      "pwrite filtered by path free", "");
  row("redis-benchmark SET, appendfsync always, rules on fsync, us", "redis bare", "redis ruled", "redis traced",
      "redis filtered", "5 x the overhead");
}

}  // namespace
}  // namespace leafcutter::bench

int main(int argc, char** argv) {
  using leafcutter::bench::Bench;
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  const std::string only = argc > 3 ? argv[3] : "";
  // In memory where that is possible: a disk's own time would hide what is measured.
  const std::string parent = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
  auto folder = parent + "/leafcutter-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 3;
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  Bench bench(folder, self.parent_path() / "bench_syscalls_subject");
  for (int i = 0; i < rounds; ++i) bench.round(only);
  std::filesystem::remove_all(folder);
  bench.print(rounds);
  return 0;
}
