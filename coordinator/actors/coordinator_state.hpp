// What the coordinator actor holds and what its handlers do with it: who is admitted, and which campaign a word is for.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/actors/coordinator.hpp"
#include "coordinator/actors/interfaces.hpp"

namespace leafcutter::coordinator {

struct CoordinatorState {
  static inline const char* name = "coordinator";
  using Self = actors::coordinator_actor::stateful_pointer<CoordinatorState>;

  caf::result<actors::Welcome> hello(const actors::NodeInfo& info, const actors::node_actor& node);
  caf::result<std::string> submit(const actors::CampaignRequest& request);
  caf::result<actors::Progress> watch(const std::string& campaign);
  void cancel(const std::string& campaign);

  /// One of its parts has ended, or it is to end itself.
  void exited(const caf::exit_msg& message);

  struct Known {
    campaign_actor handle;  ///< null: it ended
    std::string end;        ///< why
  };

  Self self = nullptr;
  std::shared_ptr<Ledger> ledger;
  dispatcher_actor dispatcher;
  std::vector<judge_actor> judges;
  std::map<std::string, Known> campaigns;
};

}  // namespace leafcutter::coordinator
