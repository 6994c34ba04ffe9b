// Ours beside haproxy (TCP mode), nginx (stream) and socat, as far as they are installed, and beside no proxy at all,
// in one interleaved run: bulk throughput, connections a second, the median of a 64-byte echo. Prints a table of
// medians, and what is wanted beside haproxy.
//   bench_proxy [ROUNDS] [NAME=COMMAND...]    more contenders: a shell command with {listen} and {upstream} for ports
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "load.hpp"
#include "ours.hpp"

namespace {

namespace bench = leafcutter::bench_proxy;
namespace fs = std::filesystem;

struct Contender {
  std::string name;
  std::uint16_t port = 0;
  pid_t pid = 0;
  std::vector<double> bulk = {}, connections = {}, echo = {};
  /// What it took the proxy's processes: ms a gigabyte, us a connection. Says more than speeds on a machine that is
  /// busy.
  std::vector<double> bulk_cpu = {}, connection_cpu = {};
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what)) text.replace(at, what.size(), with);
  return text;
}

/// CPU time of all processes of the group, and of those that they have waited for, in ms.
double cpu_ms(pid_t group) {
  double ticks = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string stat((std::istreambuf_iterator<char>(in)), {});
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(stat.substr(name_end + 2));
    std::vector<std::string> all((std::istream_iterator<std::string>(fields)), {});
    if (all.size() < 15 || all[2] != std::to_string(group)) continue;
    for (const auto field : {11, 12, 13, 14}) ticks += std::stod(all[static_cast<std::size_t>(field)]);
  }
  return ticks * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

pid_t spawn(const std::function<void()>& run) {
  const auto pid = ::fork();
  ::setpgid(pid, 0);
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  run();
  ::_exit(127);
}

pid_t spawn_command(const std::string& command) {
  return spawn([&] {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
  });
}

std::string written(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

bool installed(const char* path) { return fs::exists(path); }

std::vector<std::pair<std::string, std::string>> peers(const fs::path& scratch) {
  std::vector<std::pair<std::string, std::string>> commands;
  if (installed("/usr/sbin/haproxy"))
    commands.emplace_back("haproxy", "/usr/sbin/haproxy -db -f " +
                                         written(scratch / "haproxy.cfg",
                                                 "global\n maxconn 4000\ndefaults\n mode tcp\n timeout connect 10s\n"
                                                 " timeout client 60s\n timeout server 60s\nlisten l\n bind "
                                                 "127.0.0.1:{listen}\n server s 127.0.0.1:{upstream}\n"));
  if (installed("/usr/sbin/nginx") && installed("/usr/lib/nginx/modules/ngx_stream_module.so"))
    commands.emplace_back(
        "nginx stream",
        "/usr/sbin/nginx -p " + scratch.string() + " -c " +
            written(scratch / "nginx.conf",
                    "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off;\nworker_processes auto;\n"
                    "error_log stderr;\npid " +
                        (scratch / "nginx.pid").string() +
                        ";\nevents { worker_connections 8192; }\nstream { server { listen 127.0.0.1:{listen}; "
                        "proxy_half_close on; proxy_pass 127.0.0.1:{upstream}; } }\n"));
  if (installed("/usr/bin/socat"))
    commands.emplace_back("socat",
                          "/usr/bin/socat -b 262144 TCP-LISTEN:{listen},bind=127.0.0.1,reuseaddr,fork,nodelay "
                          "TCP:127.0.0.1:{upstream},nodelay");
  return commands;
}

bool await(const Contender& contender) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < until) {
    if (bench::answers(contender.port)) return true;
    if (contender.pid > 0 && ::waitpid(contender.pid, nullptr, WNOHANG) == contender.pid) break;
    ::poll(nullptr, 0, 10);  // a foreign process: its listening can only be tried
  }
  std::fprintf(stderr, "%s does not answer on port %u; left out\n", contender.name.c_str(), contender.port);
  return false;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure_bulk(Contender& one) {
  constexpr std::uint64_t bytes = 512 << 20;
  const auto before = cpu_ms(one.pid);
  one.bulk.push_back(bench::bulk_megabytes_per_second(one.port, bytes));
  one.bulk_cpu.push_back((cpu_ms(one.pid) - before) / (static_cast<double>(bytes) / 1e9));
}

constexpr int bulk_turns = 3, connection_turns = 5, echo_turns = 15, echoes_a_turn = 300;

/// Everybody once, in another order each time: what one leaves behind (ports in TIME_WAIT, a warm cache) meets all.
void in_turn(std::vector<Contender>& contenders, std::mt19937& order, const std::function<void(Contender&)>& measure) {
  std::vector<Contender*> all;
  for (auto& one : contenders) all.push_back(&one);
  std::shuffle(all.begin(), all.end(), order);
  for (auto* one : all) measure(*one);
}

/// In short turns, like echoes: a busy machine is another one a second later. The processor's time of all of them,
/// since it is counted in ticks.
void measure_connections(std::vector<Contender>& contenders, std::mt19937& order) {
  constexpr double seconds = 0.3;
  std::map<std::string, std::pair<double, double>> sums;
  for (int turn = 0; turn < connection_turns; ++turn)
    in_turn(contenders, order, [&](Contender& one) {
      const auto before = cpu_ms(one.pid);
      one.connections.push_back(bench::connections_per_second(one.port, 8, seconds));
      auto& [cpu, count] = sums[one.name];
      cpu += cpu_ms(one.pid) - before;
      count += one.connections.back() * seconds;
    });
  for (auto& one : contenders)
    one.connection_cpu.push_back(sums[one.name].first * 1000 / std::max(sums[one.name].second, 1.0));
}

void run(std::vector<Contender>& contenders, int rounds) {
  std::mt19937 order;
  for (int round = 0; round < rounds; ++round) {
    for (int turn = 0; turn < bulk_turns; ++turn) in_turn(contenders, order, measure_bulk);
    measure_connections(contenders, order);
    for (int turn = 0; turn < echo_turns; ++turn)
      in_turn(contenders, order,
              [](Contender& one) { one.echo.push_back(bench::echo_median_us(one.port, echoes_a_turn)); });
  }
}

void print(const std::vector<Contender>& contenders, int rounds) {
  std::printf(
      "| medians of %d interleaved rounds | bulk MB/s | CPU ms/GB | connections/s | CPU us each | 64-byte echo p50 us "
      "|\n"
      "|---|---|---|---|---|---|\n",
      rounds);
  for (const auto& one : contenders)
    std::printf("| %s | %.0f | %.0f | %.0f | %.0f | %.1f |\n", one.name.c_str(), median(one.bulk), median(one.bulk_cpu),
                median(one.connections), median(one.connection_cpu), median(one.echo));
}

/// What is wanted: at least haproxy's speeds without a fault, no more added to an echo, and its bulk with a latency.
void print_wanted(const std::vector<Contender>& contenders) {
  const auto find = [&](const std::string& name) {
    return std::find_if(contenders.begin(), contenders.end(), [&](const auto& one) { return one.name == name; });
  };
  const auto direct = find("no proxy"), peer = find("haproxy"), ours = find("leafcutter"),
             delayed = find("leafcutter, latency 10 ms");
  for (const auto& one : {direct, peer, ours, delayed})
    if (one == contenders.end()) return;
  const auto added = [&](const auto& one) { return median(one->echo) - median(direct->echo); };
  std::printf("\n| beside haproxy | ours | haproxy | ratio | wanted |\n|---|---|---|---|---|\n");
  const auto row = [](const char* what, double mine, double theirs, const char* wanted) {
    std::printf("| %s | %.1f | %.1f | %.2f | %s |\n", what, mine, theirs, mine / theirs, wanted);
  };
  row("bulk, MB/s", median(ours->bulk), median(peer->bulk), ">= 1");
  row("bulk with a latency of 10 ms beside haproxy without, MB/s", median(delayed->bulk), median(peer->bulk),
      "about 1");
  row("connections/s", median(ours->connections), median(peer->connections), ">= 1");
  row("CPU us a connection", median(ours->connection_cpu), median(peer->connection_cpu), "<= 1");
  row("added to the median 64-byte echo, us", added(ours), added(peer), "<= 1");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  char pattern[] = "/tmp/bench_proxy.XXXXXX";
  const fs::path scratch = ::mkdtemp(pattern);
  // Each has an upstream of its own, so that nobody looks for a free port among the others' that are in TIME_WAIT.
  std::vector<Contender> contenders{{"no proxy", bench::serve_upstream(), -1}};
  for (const auto& mode : bench::our_modes()) {
    Contender ours{mode, bench::free_port()};
    const auto upstream = bench::serve_upstream();
    ours.pid = spawn([&] { bench::serve_ours(mode, ours.port, upstream); });
    contenders.push_back(ours);
  }
  auto commands = peers(scratch);
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    if (equals != std::string::npos) commands.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
  }
  for (const auto& [name, command] : commands) {
    Contender peer{name, bench::free_port()};
    const auto listen = std::to_string(peer.port), up = std::to_string(bench::serve_upstream());
    for (const auto* file : {"haproxy.cfg", "nginx.conf"})
      if (command.find(file) != std::string::npos) {
        std::ifstream in(scratch / file);
        std::string text((std::istreambuf_iterator<char>(in)), {});
        written(scratch / file, replaced(replaced(text, "{listen}", listen), "{upstream}", up));
      }
    peer.pid = spawn_command(replaced(replaced(command, "{listen}", listen), "{upstream}", up));
    contenders.push_back(peer);
  }
  std::erase_if(contenders, [](const auto& one) { return !await(one); });
  run(contenders, rounds);
  print(contenders, rounds);
  print_wanted(contenders);
  for (const auto& one : contenders)
    if (one.pid > 0) ::kill(one.pid, SIGTERM);
  for (const auto& one : contenders)
    if (one.pid > 0) ::waitpid(one.pid, nullptr, 0);
  fs::remove_all(scratch);
}
