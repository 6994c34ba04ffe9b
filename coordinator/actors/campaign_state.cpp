#include "coordinator/actors/campaign_state.hpp"

#include "coordinator/actors/resolution.hpp"

namespace leafcutter::coordinator {

namespace {

constexpr auto note_time_every = std::chrono::seconds(5);

}  // namespace

std::chrono::milliseconds CampaignState::elapsed() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(self->clock().now().time_since_epoch() - started);
}

CampaignRun& CampaignState::run_now() {
  campaign->clock(elapsed());
  return *campaign;
}

// --- the coordinator

caf::result<std::string> CampaignState::submit(const SubmissionPtr& submission) {
  if (under_way(number)) return campaign->name();
  auto opened = CampaignRun::open(*parts.ledger, *submission->scenario, submission->text.identity, submission->seed);
  if (!opened) return caf::make_error(caf::sec::runtime_error, opened.error().text());
  campaign = std::move(*opened);
  ++number;
  started = self->clock().now().time_since_epoch();
  self->send(minimizer, begin_atom::value, campaign->followed_up());
  self->send(parts.dispatcher, enlist_atom::value,
             std::make_shared<const Enlistment>(
                 Enlistment{campaign->name(), number, submission->text, campaign_actor(CampaignSelf(self))}));
  enlisted = true;
  self->delayed_send(CampaignSelf{self}, campaign->scenario()->explore.max_time, budget_atom::value, number);
  self->delayed_send(CampaignSelf{self}, note_time_every, tick_atom::value, number);
  follow(campaign->start());
  return campaign->name();
}

caf::result<actors::Progress> CampaignState::watch() {
  if (!campaign) return caf::make_error(caf::sec::invalid_argument, "the campaign could not be started");
  auto progress = campaign->progress();
  progress.elapsed_ms = elapsed().count();
  auto answer = self->make_response_promise<actors::Progress>();
  // No time-out: the dispatcher is in this process, and it always answers.
  self->request(parts.dispatcher, caf::infinite, slots_atom::value)
      .then([answer, progress](std::uint32_t slots) mutable {
        progress.slots = slots;
        answer.deliver(progress);
      });
  return answer;
}

void CampaignState::cancel() {
  if (!under_way(number)) return;
  run_now().save_time();
  campaign->interrupt();
  close();
}

// --- what comes of orders

void CampaignState::done(const ExecutionPtr& execution) {
  if (!under_way(execution->run)) return;
  next_judge = (next_judge + 1) % parts.judges.size();
  auto task = std::make_shared<const JudgeTask>(JudgeTask{campaign->scenario(), execution});
  // No time-out: a judge is in this process, and it always answers.
  self->request(parts.judges[next_judge], caf::infinite, judge_atom::value, std::move(task))
      .then([this](const JudgedPtr& answer) { judged(answer); });
}

void CampaignState::judged(const JudgedPtr& answer) {
  if (!under_way(answer->execution->run)) return;
  if (!answer->execution->duplicate) return follow(run_now().take(answer->result, answer->execution->trace->chunks));
  campaign->compare(answer->result);
  if (campaign->over()) close();  // the ledger refused
}

void CampaignState::lost(const LossPtr& loss) {
  if (under_way(loss->run)) follow(run_now().take(coordinator::lost(loss->order), {}));
}

void CampaignState::inquired(std::uint64_t run, const InquiredPtr& answer) {
  if (under_way(run)) follow(run_now().inquired(*answer));
}

void CampaignState::follow(CampaignRun::Step step) {
  if (campaign->over()) return close();
  // No time-out here either.
  const auto then = [this, run = number](const InquiredPtr& answer) { inquired(run, answer); };
  if (!step.cases.empty())
    self->request(minimizer, caf::infinite, case_atom::value, std::make_shared<const Cases>(std::move(step.cases)))
        .then(then);
  for (auto& result : step.follow_ups)
    self->request(minimizer, caf::infinite, result_atom::value, std::make_shared<const Result>(std::move(result)))
        .then(then);
  if (step.orders.empty() && step.dropped.empty()) return;
  self->send(parts.dispatcher, order_atom::value,
             std::make_shared<const Orders>(Orders{campaign->name(), std::move(step.orders), std::move(step.dropped)}));
}

void CampaignState::close() {
  if (!std::exchange(enlisted, false)) return;
  self->send(parts.dispatcher, close_atom::value, campaign->name());
}

// --- time

void CampaignState::budget(std::uint64_t run) {
  if (under_way(run)) follow(run_now().stop_exploring("the time budget is over"));
}

void CampaignState::tick(std::uint64_t run) {
  if (!under_way(run)) return;
  run_now().save_time();
  if (campaign->over()) return close();  // the ledger refused
  self->delayed_send(CampaignSelf{self}, note_time_every, tick_atom::value, run);
}

}  // namespace leafcutter::coordinator
