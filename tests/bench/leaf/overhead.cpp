// The harness overhead of a leaf: one trivial service, one request, no faults, beside the same processes started by
// hand. Both kinds of run alternate, so that a noisy machine disturbs both alike; medians are compared.
//   bench_leaf [RUNS]
#include <arpa/inet.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/folders.hpp"
#include "commands/leaf_runner.hpp"
#include "node/leaf/launcher.hpp"
#include "scenarios/loader.hpp"

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int port = 28765;

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

/// A connection to the subject, tried again until it listens; -1 after two seconds.
int connect_when_ready() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const auto deadline = Clock::now() + std::chrono::seconds(2); Clock::now() < deadline;) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    ::poll(nullptr, 0, 1);
  }
  return -1;
}

/// Start, wait until it listens, ask once, end it: what a test by hand would do.
double by_hand(const std::string& subject) {
  const auto began = Clock::now();
  auto number = std::to_string(port);
  std::vector<char*> argv = {const_cast<char*>(subject.c_str()), number.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, subject.c_str(), nullptr, nullptr, argv.data(), environ) != 0) return -1;
  const int fd = connect_when_ready();
  constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: subject\r\n\r\n";
  char answer[256];
  const bool good = fd >= 0 && ::write(fd, request.data(), request.size()) > 0 && ::read(fd, answer, sizeof answer) > 0;
  ::close(fd);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return good ? milliseconds_since(began) : -1;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::string scenario_text(const std::string& subject) {
  return "leafcutter: 1\nname: overhead\nservices:\n  subject:\n    run: [\"" + subject + "\", \"" +
         std::to_string(port) + "\"]\n    ports: { http: { port: " + std::to_string(port) +
         ", protocol: http } }\n    ready: { tcp: http }\nworkload:\n  - get: subject/\n    expect: { status: 200 }\n"
         "  - settle: { quiet: 1ms, within: 1s }\nproperties:\n  - name: nothing is posted\n    never: { event: "
         "request, method: POST }\n"
         "explore: { faults: [], seed: 1 }\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "leaf-nursery")
    return leafcutter::node::run_nursery(leafcutter::node::nursery_socket);
  const int runs = argc > 1 ? std::atoi(argv[1]) : 50;
  const auto self = leafcutter::commands::own_program();
  // The scenario's folder is what a leaf shows, wherever that is.
  const auto folder = std::filesystem::path(self).parent_path().string();
  const auto subject = folder + "/bench_leaf_subject";
  const auto loaded = leafcutter::scenarios::load_text(scenario_text(subject), folder + "/overhead.yaml");
  if (!loaded.scenario) {
    std::fprintf(stderr, "%s\n", loaded.errors.front().text().c_str());
    return 2;
  }
  const auto out = std::filesystem::temp_directory_path().string() + "/leafcutter-bench-" + std::to_string(::getpid());
  const std::shared_ptr<void> removed_at_the_end(nullptr, [&out](void*) {
    std::error_code ignored;
    std::filesystem::remove_all(out, ignored);
  });
  const auto folders = leafcutter::commands::make_folders(out, "bench");
  if (!folders) return 3;
  const auto runner = leafcutter::commands::LeafRunner::start(*folders, *loaded.scenario);
  if (!runner) {
    std::fprintf(stderr, "%s\n", runner.error().text().c_str());
    return 3;
  }
  std::vector<double> hand, leaf;
  for (int i = 0; i < runs; ++i) {
    hand.push_back(by_hand(subject));
    const auto began = Clock::now();
    const auto run = (*runner)->run("00000000/0/" + std::to_string(i), {});
    if (!run || run->judgement.verdict != leafcutter::scenarios::Verdict::pass || hand.back() < 0) {
      std::fprintf(stderr, "run %d failed: %s\n", i, run ? run->judgement.detail.c_str() : run.error().text().c_str());
      return 3;
    }
    leaf.push_back(milliseconds_since(began));
  }
  std::printf("| one service, one request (%d runs each, alternating, medians) | ms |\n|---|---|\n", runs);
  std::printf("| started by hand | %.1f |\n| as a leaf, judged | %.1f |\n| overhead of the leaf | %.1f |\n",
              median(hand), median(leaf), median(leaf) - median(hand));
  return 0;
}
