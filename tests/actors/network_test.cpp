// Coordinator and nodes as processes of their own over loopback TCP, with nodes that are killed and frozen.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>

#include "base/text.hpp"
#include "coordinator/actors/coordinator.hpp"
#include "coordinator/ledger/ledger.hpp"
#include "node/actors/node.hpp"
#include "tests/actors/stream_peers.hpp"
#include "tests/actors/toy.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;

namespace {

/// Runs toy leaves on a thread, their events over a real stream.
class StreamingLauncher final : public node::Launcher {
 public:
  explicit StreamingLauncher(std::string endpoint)
      : thread_([this, endpoint = std::move(endpoint)] { work(endpoint); }) {}
  ~StreamingLauncher() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  base::Status give(const scenarios::Scenario&, const std::string&) override { return base::ok(); }
  base::Status launch(const node::LeafJob& job, OnExit on_exit) override {
    const std::lock_guard lock(mutex_);
    jobs_.emplace_back(job, std::move(on_exit));
    changed_.notify_all();
    return base::ok();
  }
  void kill(const std::string&) override {}  // these leaves end by themselves, soon

 private:
  void work(const std::string& endpoint) {
    LeafEnd leaf(endpoint);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      auto [job, on_exit] = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      const bool clean = leaf.run(job.execution, toy_events(job.plan), 4);
      on_exit({job.execution, clean, clean ? "" : "the courier does not answer"});
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::deque<std::pair<node::LeafJob, OnExit>> jobs_;
  std::thread thread_;
};

/// Joins the coordinator whose port is in `folder`/`invitation`, once it is there, and works until it is killed.
void node_process(const Folder& folder, const std::string& name, const std::string& invitation) {
  base::Expected<std::string> port = base::Error{};
  for (int look = 0; look < 60'000 && !port.ok(); ++look) {
    port = base::read_file(folder / invitation);
    if (!port.ok()) ::poll(nullptr, 0, 1);
  }
  if (!port.ok()) ::_exit(3);
  auto courier = node::Courier::start({folder / name, folder / (name + "-spool"), name, "", 1u << 30}, {});
  if (!courier) ::_exit(4);
  actors::SystemConfig config(true);
  caf::actor_system system{config};
  auto launcher = std::make_shared<StreamingLauncher>((*courier)->leaf_endpoint());
  node::NodeOptions options;
  options.name = name;
  options.slots = 2;
  const auto handle = node::connect_node(system, options, launcher, std::move(*courier), "127.0.0.1",
                                         static_cast<std::uint16_t>(std::stoi(*port)));
  while (true) ::pause();
}

class Child {
 public:
  Child(const Folder& folder, const std::string& name, const std::string& invitation) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    node_process(folder, name, invitation);
    ::_exit(0);
  }
  ~Child() { kill(); }
  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

/// The coordinator, in this process.
class Headquarters {
 public:
  explicit Headquarters(const Folder& folder) : folder_(folder), config_(true), system_(config_), self_(system_) {
    coordinator::CoordinatorOptions options;
    options.folder = folder / "ledger";
    options.events_endpoint = "tcp://127.0.0.1:*";
    auto spawned = coordinator::spawn_coordinator(system_, options);
    EXPECT_TRUE(spawned.ok()) << spawned.error().message;
    boss_ = std::move(*spawned);
    const auto port = coordinator::publish_coordinator(system_, boss_, "127.0.0.1", 0);
    EXPECT_TRUE(port.ok()) << port.error().message;
    port_ = *port;
  }
  ~Headquarters() {
    self_->send_exit(boss_, caf::exit_reason::user_shutdown);
    self_->wait_for(boss_);
  }
  void invite(const std::string& invitation) {
    EXPECT_TRUE(base::write_file_atomically(folder_ / invitation, std::to_string(port_)).ok());
  }
  void submit() {
    actors::CampaignRequest request;
    request.scenario = toy_scenario();
    request.seed = 7;
    self_->request(boss_, 10s, actors::submit_atom_v, request)
        .receive([&](std::string& name) { campaign = std::move(name); },
                 [&](caf::error& error) { ADD_FAILURE() << system_.render(error); });
  }
  actors::Progress watch() {
    actors::Progress progress;
    self_->request(boss_, 10s, actors::watch_atom_v, campaign)
        .receive([&](actors::Progress& now) { progress = std::move(now); },
                 [&](caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return progress;
  }
  std::string campaign;

 private:
  const Folder& folder_;
  actors::SystemConfig config_;
  caf::actor_system system_;
  caf::scoped_actor self_;
  actors::coordinator_actor boss_;
  std::uint16_t port_ = 0;
};

void expect_every_leaf_once(const Folder& folder, const std::string& campaign) {
  auto ledger = coordinator::Ledger::open(folder / "ledger");
  ASSERT_TRUE(ledger.ok()) << ledger.error().message;
  const auto results = *(*ledger)->results(campaign);
  std::set<std::string> executions;
  for (const auto& result : results) EXPECT_TRUE(executions.insert(result.execution).second) << result.execution;
  EXPECT_EQ((*(*ledger)->campaign(campaign))->state, "complete");
  EXPECT_FALSE((*ledger)->findings(campaign)->empty());
  for (const auto& result : results)
    EXPECT_NE(result.verdict, scenarios::Verdict::infra) << result.execution << ": " << result.detail;
}

}  // namespace

TEST(Network, AKilledNodesWorkIsDoneByAnother) {
  const Folder folder;
  Child first(folder, "first", "port");  // before there is any thread in this process
  Child second(folder, "second", "later");
  std::string campaign;
  {
    Headquarters boss(folder);
    boss.submit();
    campaign = boss.campaign;
    boss.invite("port");
    wait_until("five executions", [&] { return boss.watch().executions >= 5; });
    first.kill();
    wait_until(
        "the loss noticed", [&] { return boss.watch().slots == 0; }, 3s);
    EXPECT_FALSE(boss.watch().finished);
    boss.invite("later");
    wait_until(
        "the campaign over", [&] { return boss.watch().finished; }, 60s);
  }
  expect_every_leaf_once(folder, campaign);
}

TEST(Network, AFrozenNodeIsNoticedAndComesBack) {
  const Folder folder;
  Child node(folder, "node", "port");
  std::string campaign;
  {
    Headquarters boss(folder);
    boss.submit();
    campaign = boss.campaign;
    boss.invite("port");
    wait_until("five executions", [&] { return boss.watch().executions >= 5; });
    node.signal(SIGSTOP);
    wait_until(
        "the silence noticed", [&] { return boss.watch().slots == 0; }, 15s);
    node.signal(SIGCONT);
    wait_until(
        "the campaign over", [&] { return boss.watch().finished; }, 60s);
  }
  expect_every_leaf_once(folder, campaign);
}

TEST(Network, OnlyLoopbackIsPublished) {
  actors::SystemConfig config(true);
  caf::actor_system system{config};
  const auto refused = coordinator::publish_coordinator(system, {}, "0.0.0.0", 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::bad_input);
}
