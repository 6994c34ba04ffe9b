// The event stream from leaf to coordinator with both its parts, in one process and in processes that are killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <sstream>

#include "base/digest.hpp"
#include "coordinator/actors/intake.hpp"
#include "node/actors/courier.hpp"
#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace std::chrono_literals;
using tests::Folder;
using tests::LeafEnd;
using tests::some_events;
using tests::wait_until;

namespace {

node::Courier::Options courier_options(const Folder& folder, const std::string& endpoint) {
  return {folder / "run", folder / "spool", "node-1", endpoint, 1u << 30};
}

}  // namespace

TEST(Stream, CarriesManyLeavesAtOnce) {
  const Folder folder;
  std::mutex mutex;
  std::map<std::string, coordinator::FinishedTrace> finished;
  auto intake = coordinator::Intake::start("ipc://" + (folder / "events"),
                                           [&](coordinator::FinishedTrace trace) {
                                             const std::lock_guard lock(mutex);
                                             ASSERT_TRUE(finished.emplace(trace.execution, trace).second)
                                                 << trace.execution << " came twice";
                                           },
                                           {64 * 1024, 1u << 20, folder.path()});
  ASSERT_TRUE(intake.ok()) << intake.error().message;
  auto courier = node::Courier::start(courier_options(folder, (*intake)->bound_endpoint()), {});
  ASSERT_TRUE(courier.ok()) << courier.error().message;
  std::vector<std::thread> leaves;
  std::atomic<int> failed{0};
  for (int leaf = 0; leaf < 8; ++leaf) {
    for (int i = 0; i < 5; ++i) (*intake)->expect(std::to_string(leaf) + "/" + std::to_string(i));
    leaves.emplace_back([&, leaf] {
      LeafEnd end((*courier)->leaf_endpoint());
      for (int i = 0; i < 5; ++i) {
        const auto events = static_cast<std::uint64_t>(100 + leaf);
        if (!end.run(std::to_string(leaf) + "/" + std::to_string(i), events, 7)) ++failed;
      }
    });
  }
  for (auto& leaf : leaves) leaf.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ((*courier)->flush(20s), 0u);
  const std::lock_guard lock(mutex);
  ASSERT_EQ(finished.size(), 40u);
  for (const auto& [name, trace] : finished) {
    EXPECT_TRUE(trace.complete);
    EXPECT_EQ(*protocols::decode_chunks(trace.chunks), some_events(0, trace.events)) << name;
  }
}

namespace {

// --- processes that are killed
// ----------------------------------------------------------------------------------------

constexpr int rounds = 10;  // each ends with a kill
constexpr int leaves_per_round = 3;
constexpr int leaves = rounds * leaves_per_round;
constexpr std::uint64_t events = 60;
constexpr int incarnations = 40;

std::string execution(int leaf, int incarnation) {
  return "c/0/" + std::to_string(leaf) + "#0@" + std::to_string(incarnation);
}
std::string leaf_of(const std::string& name) { return name.substr(0, name.find('#')); }

/// What a coordinator process wrote down: "execution complete digest" lines, a torn one left out.
struct Entry {
  std::string execution, digest;
  bool complete = false;
};
std::vector<Entry> journal(const std::string& path) {
  std::vector<Entry> entries;
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    std::istringstream words(line);
    Entry entry;
    words >> entry.execution >> entry.complete >> entry.digest;
    entries.push_back(entry);
  }
  return entries;
}

std::set<std::string> complete_leaves(const std::string& path) {
  std::set<std::string> out;
  for (const auto& entry : journal(path)) {
    if (entry.complete) out.insert(leaf_of(entry.execution));
  }
  return out;
}

/// What the test tells the processes it starts, in memory that they share.
struct Orders {
  /// So many leaves may run by now: however fast the machine is, something is left to do in every round.
  std::atomic<int> released = 0;
  /// The coordinator stands still once its journal has so many entries: before it can acknowledge the last of them, at
  /// the one moment when being killed could make a trace come twice.
  std::atomic<std::size_t> still_at = std::numeric_limits<std::size_t>::max();
};

/// Lives in memory of its own, which children of this process share.
class SharedOrders {
 public:
  SharedOrders() {
    if (page_ != MAP_FAILED) orders_ = new (page_) Orders;
  }
  ~SharedOrders() {
    if (page_ != MAP_FAILED) ::munmap(page_, sizeof(Orders));
  }
  SharedOrders(const SharedOrders&) = delete;
  SharedOrders& operator=(const SharedOrders&) = delete;
  Orders* get() const { return orders_; }

 private:
  void* page_ = ::mmap(nullptr, sizeof(Orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Orders* orders_ = nullptr;
};

/// A child that dies with the test, runs `body` and never returns.
template <class Body>
pid_t start_process(Body body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  ::_exit(0);
}

void kill_and_reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
}

/// The coordinator's end: every trace goes into the journal, and after a restart nothing in the journal is expected.
void coordinator_process(const Folder& folder, const Orders& orders) {
  const int fd = ::open((folder / "journal").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const auto intake = coordinator::Intake::start("ipc://" + (folder / "events"), [&](coordinator::FinishedTrace trace) {
    const auto decoded = protocols::decode_chunks(trace.chunks);
    const auto digest = decoded.ok() ? base::sha256(protocols::encode_chunk(*decoded)).substr(0, 16) : "unreadable";
    const auto line = trace.execution + " " + (trace.complete ? "1" : "0") + " " + digest + "\n";
    (void)!::write(fd, line.data(), line.size());
    if (journal(folder / "journal").size() >= orders.still_at) ::pause();
  });
  if (!intake) ::_exit(3);
  std::set<std::string> known;
  for (const auto& entry : journal(folder / "journal")) known.insert(entry.execution);
  for (int leaf = 0; leaf < leaves; ++leaf) {
    for (int incarnation = 0; incarnation < incarnations; ++incarnation) {
      const auto name = execution(leaf, incarnation);
      if (!known.contains(name)) (*intake)->expect(name);
    }
  }
  ::pause();
}

/// The node's end: a courier and a leaf that runs what is not complete yet under this incarnation's name.
void node_process(const Folder& folder, int incarnation, const Orders& orders) {
  const auto courier = node::Courier::start(courier_options(folder, "ipc://" + (folder / "events")), {});
  if (!courier) ::_exit(3);
  const auto done = complete_leaves(folder / "journal");
  LeafEnd leaf((*courier)->leaf_endpoint());
  for (int i = 0; i < leaves; ++i) {
    const auto name = execution(i, incarnation);
    if (!wait_until("leaf " + std::to_string(i) + " may run", [&] { return i < orders.released; })) ::_exit(4);
    if (!done.contains(leaf_of(name))) leaf.run(name, events, 3);
  }
  (*courier)->flush(60s);
  ::pause();
}

}  // namespace

TEST(Stream, DeliversExactlyOnceThoughBothEndsAreKilled) {
  const Folder folder;
  const auto path = folder / "journal";
  int incarnation = 0;
  const SharedOrders shared;
  ASSERT_NE(shared.get(), nullptr);
  auto& orders = *shared.get();
  pid_t coordinator = start_process([&] { coordinator_process(folder, orders); });
  pid_t node = start_process([&] { node_process(folder, incarnation, orders); });
  std::mt19937 rng(1);
  for (int round = 0; round < rounds; ++round) {
    // Kill in the middle of the traffic: as soon as some of the round's executions have come, or as the last one does.
    const auto enough = journal(path).size() + 1 + rng() % leaves_per_round;
    const bool of_node = round % 2 == 0;
    if (!of_node) orders.still_at = enough;
    orders.released += leaves_per_round;
    ASSERT_TRUE(wait_until("more executions in round " + std::to_string(round),
                           [&] { return journal(path).size() >= enough; }));
    if (of_node) {
      kill_and_reap(node);
      ++incarnation;
      node = start_process([&] { node_process(folder, incarnation, orders); });
    } else {
      kill_and_reap(coordinator);
      orders.still_at = std::numeric_limits<std::size_t>::max();
      coordinator = start_process([&] { coordinator_process(folder, orders); });
    }
  }
  wait_until(
      "all leaves complete", [&] { return complete_leaves(path).size() == leaves; }, 40s);
  kill_and_reap(node);
  kill_and_reap(coordinator);
  const auto right = base::sha256(protocols::encode_chunk(some_events(0, events))).substr(0, 16);
  std::map<std::string, int> times;
  for (const auto& entry : journal(path)) {
    EXPECT_EQ(++times[entry.execution], 1) << entry.execution << " was handed on more than once";
    if (entry.complete) {
      EXPECT_EQ(entry.digest, right) << entry.execution << " is not what its leaf sent";
    }
  }
}
