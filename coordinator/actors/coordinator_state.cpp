#include "coordinator/actors/coordinator_state.hpp"

#include "coordinator/actors/campaign_actor.hpp"
#include "coordinator/search/epochs.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::coordinator {

namespace {

using actors::NodeInfo;
using actors::Progress;
using actors::Welcome;

constexpr std::uint32_t slots_at_most = 1024;

/// Why a node is not admitted; empty: it is.
std::string refusal(const NodeInfo& info) {
  if (info.protocol != actors::protocol_version) {
    return "this coordinator speaks version " + std::to_string(actors::protocol_version) + ", the node version " +
           std::to_string(info.protocol) + "; the same release on both sides would do";
  }
  if (info.name.empty()) return "a node needs a name";
  if (info.slots == 0 || info.slots > slots_at_most) {
    return "a node has 1 to " + std::to_string(slots_at_most) + " slots, not " + std::to_string(info.slots);
  }
  return {};
}

}  // namespace

caf::result<Welcome> CoordinatorState::hello(const NodeInfo& info, const actors::node_actor& node) {
  Welcome refused;
  refused.refusal = node ? refusal(info) : "a hello without a node";
  if (!refused.refusal.empty()) return refused;
  // Here and not in the dispatcher: the news of its end must not overtake its last words, which pass through here.
  self->monitor(node);
  return self->delegate(dispatcher, actors::hello_atom_v, info, node);
}

caf::result<std::string> CoordinatorState::submit(const actors::CampaignRequest& request) {
  const auto& text = request.scenario;
  scenarios::LoadOptions load;
  load.variant = text.variant;
  load.check_programs = false;  // whoever submits has done that, and nodes may have them elsewhere
  auto loaded = scenarios::load_text(text.text, text.file, load);
  if (!loaded.scenario) {
    return caf::make_error(caf::sec::invalid_argument,
                           loaded.errors.empty() ? "the scenario cannot be read" : loaded.errors.front().text());
  }
  auto scenario = std::make_shared<scenarios::Scenario>(std::move(*loaded.scenario));
  scenario->explore.seed = request.seed;
  auto& known = campaigns[campaign_name(*scenario, text.identity)];
  if (!known.handle) known = {spawn_campaign(*self, {ledger, dispatcher, judges}), {}};
  auto submission = std::make_shared<const Submission>(Submission{std::move(scenario), text, request.seed});
  return self->delegate(known.handle, actors::submit_atom_v, std::move(submission));
}

caf::result<Progress> CoordinatorState::watch(const std::string& campaign) {
  const auto found = campaigns.find(campaign);
  if (found == campaigns.end())
    return caf::make_error(caf::sec::invalid_argument, "no campaign " + campaign + " was submitted");
  if (!found->second.handle) return caf::make_error(caf::sec::runtime_error, found->second.end);
  return self->delegate(found->second.handle, actors::watch_atom_v);
}

void CoordinatorState::cancel(const std::string& campaign) {
  const auto found = campaigns.find(campaign);
  if (found != campaigns.end() && found->second.handle) self->send(found->second.handle, actors::cancel_atom_v);
}

void CoordinatorState::exited(const caf::exit_msg& message) {
  for (auto& [campaign, known] : campaigns) {
    if (!known.handle || known.handle.address() != message.source) continue;
    // The other campaigns go on.
    self->send(dispatcher, close_atom::value, campaign);
    known.handle = nullptr;
    known.end = "campaign " + campaign + " ended: " + self->system().render(message.reason) +
                "; submitted again it goes on where it stood";
    return;
  }
  if (message.reason) self->quit(message.reason);
}

}  // namespace leafcutter::coordinator
