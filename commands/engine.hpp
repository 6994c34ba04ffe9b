// Coordinator and node in one process, put together for `run`; the halves of it for `coordinator` and `node`.
#pragma once

#include <caf/actor_system.hpp>
#include <memory>
#include <string>

#include "actors/messages.hpp"
#include "actors/system.hpp"
#include "base/error.hpp"
#include "commands/folders.hpp"
#include "config/config.hpp"
#include "coordinator/report/report.hpp"
#include "node/actors/courier.hpp"
#include "node/actors/node.hpp"
#include "node/leaf/launcher.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::commands {

/// The node's half: what runs leaves, and what carries their events away.
struct NodeParts {
  std::shared_ptr<node::Launcher> launcher;
  std::shared_ptr<node::Courier> courier;
};
base::Expected<NodeParts> start_node_parts(const Folders& folders, const std::string& name,
                                           const std::string& events_endpoint);

/// How a node of this process is set up. `slots`: as asked for on the command line, or 0.
node::NodeOptions node_options(const std::string& name, unsigned slots, const config::Config& config,
                               std::vector<std::string> capabilities);

/// The capabilities seen on this host. Errors: unavailable, naming what leaves cannot do without and what would enable
/// it.
base::Expected<std::vector<std::string>> require_capabilities();

/// Submits the campaign and shows its progress until it is over or the user interrupts it (then it is stopped, its
/// state kept). Returns the campaign's name; `interrupted` says how it ended.
base::Expected<std::string> follow_campaign(caf::actor_system& system, const actors::coordinator_actor& coordinator,
                                            const actors::CampaignRequest& request, class Interrupts& interrupts,
                                            bool& interrupted);

actors::CampaignRequest campaign_request(const scenarios::Scenario& scenario);

/// Reads the campaign back from its ledger, writes report.html, report.json and junit.xml into its folder and prints
/// it. Returns the exit code.
int report_campaign(const std::string& out, const std::string& campaign, const scenarios::Scenario& scenario,
                    bool interrupted, const std::string& format);

/// The events of an execution, from the ledger's blob store.
base::Expected<std::vector<protocols::Event>> load_trace(coordinator::Ledger& ledger, const std::string& execution);

}  // namespace leafcutter::commands
