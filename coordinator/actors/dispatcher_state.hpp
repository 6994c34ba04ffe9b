// What the dispatcher actor holds and what its handlers do with it: the board of leases, the nodes' handles, halves of
// executions that wait for their other half, and the campaigns it works for.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/actors/dispatcher.hpp"
#include "coordinator/dispatch/board.hpp"

namespace leafcutter::coordinator {

/// The dispatcher with what it is told by itself.
using DispatcherSelf = dispatcher_actor::extend<
    // Time to look for leases that have run out.
    caf::reacts_to<tick_atom>>;

struct DispatcherState {
  static inline const char* name = "dispatcher";
  using Self = DispatcherSelf::stateful_pointer<DispatcherState>;

  // --- what nodes say ---
  actors::Welcome hello(const actors::NodeInfo& info, const actors::node_actor& node);
  void want(std::uint64_t session, std::uint32_t free);
  void renew(std::uint64_t session);
  void done(const actors::LeafReport& report);
  void gone(const caf::actor_addr& source);
  void trace(const TracePtr& trace);

  // --- what campaigns say ---
  void enlist(const EnlistmentPtr& campaign);
  void order(const OrdersPtr& orders);
  void close(const std::string& campaign);

  void tick();

  struct Node {
    actors::node_actor handle;
    std::string node_name;
    std::set<std::string> taught;  ///< identities of scenarios
  };
  struct Halves {
    std::optional<actors::LeafReport> report;
    TracePtr trace;
  };

  Instant now() const;
  void distribute();
  void hand_out(actors::Lease lease);
  void teach(Node& node, const std::string& campaign);
  void join(const std::string& attempt);
  void settle(const Board::Returned& returned);
  const Enlistment* client(std::string_view address) const;

  Self self = nullptr;
  caf::timespan lease_time{};
  std::unique_ptr<Board> board;
  std::map<std::uint64_t, Node> nodes;           ///< by session
  std::map<std::string, Halves> halves;          ///< by attempt
  std::map<std::string, EnlistmentPtr> clients;  ///< by campaign
  std::unique_ptr<Intake> intake;                ///< last: its thread ends before what it reports to
};

}  // namespace leafcutter::coordinator
