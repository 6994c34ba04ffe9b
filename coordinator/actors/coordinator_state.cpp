#include "coordinator/actors/coordinator_state.hpp"

#include <algorithm>
#include <caf/send.hpp>

#include "coordinator/actors/resolution.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::coordinator {

namespace {

using actors::LeafReport;
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

void TraceBridge::deliver(FinishedTrace trace) {
  caf::actor_addr target;
  {
    const std::lock_guard lock(mutex);
    target = coordinator;
  }
  if (const auto handle = caf::actor_cast<caf::actor>(target)) {
    caf::anon_send(handle, trace_atom::value, std::make_shared<const FinishedTrace>(std::move(trace)));
  }
}

Instant CoordinatorState::now() const { return self->clock().now().time_since_epoch(); }

CoordinatorState::Run* CoordinatorState::run_of(std::string_view address) {
  const auto found = runs.find(std::string(campaign_of(address)));
  return found == runs.end() || found->second.run.over() ? nullptr : &found->second;
}

// --- nodes
// ------------------------------------------------------------------------------------------------------------

Welcome CoordinatorState::hello(const NodeInfo& info, const actors::node_actor& node) {
  Welcome welcome;
  welcome.refusal = node ? refusal(info) : "a hello without a node";
  if (!welcome.refusal.empty()) return welcome;
  for (auto at = nodes.begin(); at != nodes.end();) {
    const auto older = at++;
    if (older->second.node_name != info.name) continue;
    // The same process saying hello again goes on; another one of that name is to stop.
    if (older->second.handle != node) {
      self->demonitor(older->second.handle.address());
      self->send(older->second.handle, actors::drain_atom_v);
    }
    nodes.erase(older);
  }
  self->monitor(node);
  Board::Returned lost_work;
  welcome.session = board->admit(info, now(), lost_work);
  welcome.admitted = true;
  welcome.events_endpoint = intake->bound_endpoint();
  welcome.renew_every = options.lease_time / 4;
  nodes[welcome.session] = Node{node, info.name, {}};
  settle(lost_work);
  distribute();
  return welcome;
}

void CoordinatorState::want(std::uint64_t session, std::uint32_t free) {
  if (board->want(session, free, now())) distribute();
}

void CoordinatorState::renew(std::uint64_t session) { board->renew(session, now()); }

void CoordinatorState::down(const caf::actor_addr& source) {
  for (auto at = nodes.begin(); at != nodes.end();) {
    const auto node = at++;
    if (node->second.handle.address() != source) continue;
    const auto session = node->first;
    nodes.erase(node);
    settle(board->node_lost(session));
  }
  distribute();
}

void CoordinatorState::teach(Node& node, const std::string& campaign) {
  const auto run = runs.find(campaign);
  if (run == runs.end() || !node.taught.insert(run->second.text.identity).second) return;
  self->send(node.handle, actors::learn_atom_v, run->second.text);
}

void CoordinatorState::distribute() {
  // In turns, so that nobody gets everything while others are idle; it ends when work or room does.
  for (auto leases = board->grants(now()); !leases.empty(); leases = board->grants(now())) {
    for (auto& lease : leases) hand_out(std::move(lease));
  }
}

void CoordinatorState::hand_out(actors::Lease lease) {
  auto& node = nodes.at(lease.session);
  // Before the node can hear of them, so that no event comes unexpected.
  for (const auto& order : lease.orders) intake->expect(order.execution);
  teach(node, std::string(campaign_of(lease.orders.front().address)));
  self->send(node.handle, actors::lease_atom_v, std::move(lease));
}

// --- results
// ----------------------------------------------------------------------------------------------------------

void CoordinatorState::done(const LeafReport& report) {
  const auto word = board->report(report, now());
  if (word == Board::Word::stale) return;
  auto& half = halves[report.execution];
  half.report = report;
  half.duplicate = word == Board::Word::duplicate;
  // A leaf that never said anything has no stream that could end.
  if (report.events == 0 && !half.trace)
    half.trace = std::make_shared<const FinishedTrace>(FinishedTrace{report.execution, 0, false, {}});
  join(report.execution);
  distribute();
}

void CoordinatorState::trace(const TracePtr& trace) {
  if (!board->order_of(trace->execution)) return;  // withdrawn meanwhile
  halves[trace->execution].trace = trace;
  join(trace->execution);
}

void CoordinatorState::join(const std::string& attempt) {
  const auto found = halves.find(attempt);
  if (!found->second.report || !found->second.trace) return;
  auto task = std::make_shared<JudgeTask>();
  task->report = std::move(*found->second.report);
  task->trace = std::move(found->second.trace);
  halves.erase(found);
  intake->forget(attempt);
  const auto* known = board->order_of(attempt);
  if (!known) return;
  task->order = *known;
  task->duplicate = !board->resolve(attempt).has_value();
  const auto* run = run_of(task->order.address);
  if (!run) return;
  task->run = run->number;
  task->scenario = run->run.scenario();
  next_judge = (next_judge + 1) % judges.size();
  // No time-out: a judge is in this process, and it always answers.
  self->request(judges[next_judge], caf::infinite, judge_atom::value, JudgeTaskPtr(std::move(task)))
      .then([this](const JudgedPtr& answer) { judged(answer); });
}

void CoordinatorState::judged(const JudgedPtr& answer) {
  auto* run = run_of(answer->task->order.address);
  if (!run || run->number != answer->task->run) return;
  if (answer->task->duplicate) return run->run.compare(answer->result);
  follow(*run, run->run.take(answer->result, answer->task->trace->chunks));
  distribute();
}

void CoordinatorState::settle(const Board::Returned& returned) {
  for (const auto& attempt : returned.withdrawn) {
    intake->forget(attempt);
    halves.erase(attempt);
  }
  for (const auto& order : returned.given_up) {
    auto* run = run_of(order.address);
    if (run) follow(*run, run->run.take(lost(order), {}));
  }
}

// --- campaigns
// --------------------------------------------------------------------------------------------------------

void CoordinatorState::follow(Run& run, CampaignRun::Step step) {
  for (const auto& execution : step.dropped) board->withdraw(execution);
  if (run.run.over()) return clear_away(run.run.name());
  for (auto& order : step.orders) board->enqueue(std::move(order));
}

void CoordinatorState::clear_away(const std::string& campaign) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fences;
  const auto returned = board->cancel(campaign, fences);
  for (const auto& [session, fence] : fences) {
    const auto node = nodes.find(session);
    if (node != nodes.end()) self->send(node->second.handle, actors::cancel_atom_v, fence);
  }
  settle(returned);
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
  auto opened = CampaignRun::open(*ledger, *loaded.scenario, text.identity, request.seed);
  if (!opened) return caf::make_error(caf::sec::runtime_error, opened.error().text());
  const auto campaign = opened->name();
  const auto known = runs.find(campaign);
  if (known != runs.end()) {
    if (!known->second.run.over()) return campaign;
    runs.erase(known);
  }
  auto& run = runs.emplace(campaign, Run{std::move(*opened), next_run++, text, now()}).first->second;
  self->delayed_send(CoordinatorSelf{self}, run.run.scenario()->explore.max_time, budget_atom::value, campaign,
                     run.number);
  follow(run, run.run.start());
  distribute();
  return campaign;
}

caf::result<Progress> CoordinatorState::watch(const std::string& campaign) {
  const auto found = runs.find(campaign);
  if (found == runs.end())
    return caf::make_error(caf::sec::invalid_argument, "no campaign " + campaign + " was submitted");
  auto progress = found->second.run.progress();
  progress.slots = board->standing(now()).slots;
  progress.elapsed_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now() - found->second.started).count();
  return progress;
}

void CoordinatorState::cancel(const std::string& campaign) {
  const auto found = runs.find(campaign);
  if (found == runs.end() || found->second.run.over()) return;
  found->second.run.tick(std::chrono::duration_cast<std::chrono::milliseconds>(now() - found->second.started));
  found->second.run.interrupt();
  clear_away(campaign);
  distribute();
}

void CoordinatorState::budget(const std::string& campaign, std::uint64_t number) {
  auto* run = run_of(campaign);
  if (!run || run->number != number) return;
  follow(*run, run->run.stop_exploring("the time budget is over"));
  distribute();
}

void CoordinatorState::tick() {
  settle(board->expire(now()));
  for (auto& [campaign, run] : runs) {
    run.run.tick(std::chrono::duration_cast<std::chrono::milliseconds>(now() - run.started));
    if (run.run.over()) clear_away(campaign);
  }
  distribute();
  self->delayed_send(CoordinatorSelf{self}, options.lease_time / 4, tick_atom::value);
}

}  // namespace leafcutter::coordinator
