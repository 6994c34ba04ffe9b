// What the coordinator actor holds and what its handlers do with it: the board of leases, the nodes' handles, halves of
// results that wait for their other half, and the campaigns under way.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/actors/campaign_run.hpp"
#include "coordinator/actors/coordinator.hpp"
#include "coordinator/actors/judge_actor.hpp"
#include "coordinator/dispatch/board.hpp"

namespace leafcutter::coordinator {

using trace_atom = caf::atom_constant<caf::atom("trace")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using budget_atom = caf::atom_constant<caf::atom("budget")>;

/// The coordinator with what it is told by its own parts.
using CoordinatorSelf = actors::coordinator_actor::extend<
    // An execution's events are all there.
    caf::reacts_to<trace_atom, TracePtr>,
    // Time to look for leases that have run out.
    caf::reacts_to<tick_atom>,
    // A campaign's time is over. (campaign, run)
    caf::reacts_to<budget_atom, std::string, std::uint64_t>>;

/// From the intake's thread into the mailbox; holds the coordinator weakly, for the coordinator owns the intake.
struct TraceBridge {
  std::mutex mutex;
  caf::actor_addr coordinator;
  void deliver(FinishedTrace trace);
};

struct CoordinatorParts {
  CoordinatorOptions options;
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<Intake> intake;
};

struct CoordinatorState {
  static inline const char* name = "coordinator";
  using Self = CoordinatorSelf::stateful_pointer<CoordinatorState>;

  // --- what nodes say ---
  actors::Welcome hello(const actors::NodeInfo& info, const actors::node_actor& node);
  void want(std::uint64_t session, std::uint32_t free);
  void renew(std::uint64_t session);
  void done(const actors::LeafReport& report);
  void down(const caf::actor_addr& source);

  // --- what commands say ---
  caf::result<std::string> submit(const actors::CampaignRequest& request);
  caf::result<actors::Progress> watch(const std::string& campaign);
  void cancel(const std::string& campaign);

  // --- what its own parts say ---
  void trace(const TracePtr& trace);
  void judged(const JudgedPtr& judged);
  void budget(const std::string& campaign, std::uint64_t number);
  void tick();

  struct Node {
    actors::node_actor handle;
    std::string node_name;
    std::set<std::string> taught;  ///< identities of scenarios
  };
  struct Halves {
    std::optional<actors::LeafReport> report;
    TracePtr trace;
    bool duplicate = false;
  };
  struct Run {
    CampaignRun run;
    std::uint64_t number = 0;  ///< tells a campaign from its own earlier submission
    actors::ScenarioText text;
    Instant started{};
  };

  Instant now() const;
  void distribute();
  void hand_out(actors::Lease lease);
  void teach(Node& node, const std::string& campaign);
  void join(const std::string& attempt);
  void settle(const Board::Returned& returned);
  void follow(Run& run, CampaignRun::Step step);
  void clear_away(const std::string& campaign);
  Run* run_of(std::string_view address);

  Self self = nullptr;
  CoordinatorOptions options;
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<Board> board;
  std::map<std::uint64_t, Node> nodes;   ///< by session
  std::map<std::string, Halves> halves;  ///< by attempt
  std::map<std::string, Run> runs;       ///< by campaign
  std::vector<judge_actor> judges;
  std::size_t next_judge = 0;
  std::uint64_t next_run = 1;
  std::unique_ptr<Intake> intake;  ///< last: its thread ends before what it reports to
};

}  // namespace leafcutter::coordinator
