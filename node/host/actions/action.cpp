#include "node/host/actions/action.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.hpp"
#include "node/host/actions/keeper.hpp"
#include "node/host/actions/probe.hpp"
#include "node/host/actions/recipe.hpp"
#include "node/host/actions/worker.hpp"

namespace leafcutter::node::host {
namespace {

using protocols::Outcome;

constexpr auto keeper_look = std::chrono::milliseconds(200);

std::string name_of_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("unknown");
}

ActionResult with(ActionResult result, Outcome outcome, std::string detail) {
  result.outcome = outcome;
  result.detail = std::move(detail);
  return result;
}

/// How a command went, as it was seen to end; what it said plays no part.
Outcome outcome_of(const CommandEnd& end) {
  switch (end.how) {
    case CommandEnd::How::not_executed: return Outcome::denied;
    case CommandEnd::How::exited: return end.status == 0 ? Outcome::success : Outcome::failure;
    case CommandEnd::How::killed: return Outcome::failure;
    case CommandEnd::How::timed_out: return Outcome::timed_out;
    case CommandEnd::How::lost: return Outcome::lost;
  }
  return Outcome::lost;
}

/// One that undoes itself needs no waiting for its time to be over.
bool lasts(const Intent& intent) {
  const auto kind = intent.recipe.value("kind", "");
  return kind == "workers" || kind == "fill" || kind == "shape" || kind == "configuration" || kind == "stop";
}

}  // namespace

base::Expected<HostActions> HostActions::open(const std::string& state_folder, Profile profile, ActionOptions options) {
  auto state = State::open(state_folder);
  if (!state) return state.error();
  if (options.session.empty()) options.session = boot_id();
  auto key = audit_key(state->folder());
  if (!key) return key.error();
  auto log = AuditLog::open({state->path("audit.log"), name_of_host(), {}}, *key);
  if (!log) return log.error();
  // Whatever an earlier process has left is undone before anything new is begun.
  auto begun = HostActions(std::move(*state), std::move(profile), std::move(options), std::move(*log));
  recover(begun.state_, begun.options_.program, false);
  const auto lock = begun.state_.lock();
  if (!lock) return lock.error();
  if (!begun.state_.list().intents.empty())
    if (const auto kept = start_keeper(begun.state_, begun.options_.program); !kept) return kept.error();
  return begun;
}

Situation HostActions::situation() const {
  Situation out;
  for (const auto& intent : state_.list().intents) out.running.push_back({intent.action, intent.resource});
  out.recovered = state_.recovered(options_.session, profile_.digest);
  return out;
}

base::Status HostActions::note(const ActionResult& result, const Request& request, const char* stage) {
  protocols::AuditRecord record;
  record.session = options_.session;
  record.owner = options_.owner;
  record.id = result.id;
  record.action = request.action;
  record.resource = result.resource;
  record.stage = stage;
  record.detail = result.detail;
  record.profile = profile_.digest;
  if (std::string_view(stage) == "outcome") record.outcome = result.outcome;
  return log_.append(std::move(record));
}

ActionResult HostActions::finish(ActionResult result, const Request& request) {
  if (const auto noted = note(result, request, "outcome"); !noted)
    result.detail += (result.detail.empty() ? "" : "; ") + ("it is not in the audit log: " + noted.error().message);
  return result;
}

ActionResult HostActions::run(const Request& request) {
  ActionResult result;
  result.id = new_id();
  auto lock = state_.lock();
  if (!lock) return finish(with(std::move(result), Outcome::denied, lock.error().message), request);
  const auto decision = decide(profile_, request, situation());
  result.resource = decision.resource;
  if (!decision.allowed) return finish(with(std::move(result), Outcome::denied, decision.reason), request);
  if (request.action == "probe") {
    lock->reset();
    if (const auto noted = note(result, request, "intent"); !noted)
      return with(std::move(result), Outcome::denied, noted.error().message);
    auto probed = run_probe(profile_.probes.at(request.parameters.at("name")));
    result.seen = std::move(probed.seen);
    return finish(with(std::move(result), probed.outcome, probed.detail), request);
  }
  reached(Step::decided);
  auto recipe = prepare_recipe(profile_, request, decision, state_, result.id);
  if (!recipe) return finish(with(std::move(result), Outcome::denied, recipe.error().message), request);
  Intent intent{result.id,
                options_.owner,
                options_.session,
                profile_.digest,
                request.action,
                result.resource,
                boot_id(),
                boot_time() + recipe->lasts.count(),
                std::move(recipe->json)};
  // Nothing is done that is not on disk, in the log, and watched over by somebody who outlives us.
  if (const auto noted = note(result, request, "intent"); !noted)
    return with(std::move(result), Outcome::denied, noted.error().message);
  const auto held = state_.write(intent);
  if (!held) return finish(with(std::move(result), Outcome::denied, held.error().message), request);
  reached(Step::prepared);
  if (const auto kept = start_keeper(state_, options_.program); !kept) {
    const auto forgotten = state_.forget(intent.id);
    return finish(
        with(std::move(result), Outcome::denied, kept.error().message + (forgotten ? "" : "; its intent stays")),
        request);
  }
  reached(Step::kept);
  lock->reset();
  if (recipe->process) {
    const int signal = signal_number(intent.recipe.at("signal").get<std::string>());
    if (::syscall(SYS_pidfd_send_signal, recipe->process.get(), signal, nullptr, 0U) != 0)
      return finish(undo_now(intent, with(std::move(result), Outcome::denied,
                                          base::system_error("the signal was not sent", errno).message)),
                    request);
  }
  return finish(carry_out(request, intent, std::move(result)), request);
}

ActionResult HostActions::carry_out(const Request& request, const Intent& intent, ActionResult result) {
  const EffectContext context{state_, options_.program};
  const auto* effect = effect_of(intent);
  result.outcome = Outcome::success;
  if (intent.recipe.contains("line")) {
    auto end = intent.action == "command"
                   ? run_under_worker(state_, options_.program, intent, options_.stop)
                   : execute(command_line_from(intent.recipe.at("line")), {options_.stop, false, true, {}});
    result.output = std::move(end.output);
    result = with(std::move(result), outcome_of(end), end.text());
  } else if (const auto applied = effect->apply(intent, context); !applied) {
    result = with(std::move(result), Outcome::failure, applied.error().message);
  }
  reached(Step::applied);
  if (result.outcome == Outcome::success && lasts(intent)) {
    if (const auto checked = effect->check(intent, context); !checked)
      result = with(std::move(result), Outcome::failure, "it did not come into force: " + checked.error().message);
    else if (const auto noted = note(result, request, "applied"); !noted)
      result = with(std::move(result), Outcome::failure, noted.error().message);
    reached(Step::checked);
    if (result.outcome == Outcome::success && options_.detach)
      return with(std::move(result), Outcome::none, "in force; its keeper undoes it");
    if (result.outcome == Outcome::success) result = keep_until_over(intent, std::move(result));
  }
  return undo_now(intent, std::move(result));
}

/// Until its time is over or we are told to stop; should its keeper die, there is another.
ActionResult HostActions::keep_until_over(const Intent& intent, ActionResult result) {
  const EffectContext context{state_, options_.program};
  const auto* effect = effect_of(intent);
  auto keeper = keeper_of(state_);
  while (!intent.overdue()) {
    // Near its end it may be gone by itself.
    if (boot_time() + 100'000'000 < intent.deadline)
      if (const auto still = effect->check(intent, context); !still)
        return with(std::move(result), Outcome::failure, "it did not stay in force: " + still.error().message);
    const auto left =
        std::min<std::int64_t>(intent.deadline - boot_time(), std::chrono::nanoseconds(keeper_look).count());
    const timespec span{left / 1'000'000'000, left % 1'000'000'000};
    std::array<pollfd, 2> watched = {{{keeper ? keeper.get() : -1, POLLIN, 0}, {options_.stop, POLLIN, 0}}};
    ::ppoll(watched.data(), watched.size(), &span, nullptr);
    if (watched[1].revents != 0) return with(std::move(result), Outcome::success, "ended early, as it was told to");
    if (!keeper || watched[0].revents != 0) {
      const auto lock = state_.lock();
      const auto again = lock ? start_keeper(state_, options_.program) : base::Status(lock.error());
      if (!again) return with(std::move(result), Outcome::failure, again.error().message);
      keeper = keeper_of(state_);
    }
  }
  return result;
}

ActionResult HostActions::undo_now(const Intent& intent, ActionResult result) {
  const EffectContext context{state_, options_.program};
  const auto* effect = effect_of(intent);
  auto undone = effect->undo(intent, context);
  reached(Step::undone);
  if (undone) undone = effect->gone(intent, context);
  if (undone) reached(Step::gone);
  if (undone) undone = undo_intent(intent, context, "its actor");
  if (!undone) {
    result.outcome = result.outcome == Outcome::success ? Outcome::failure : result.outcome;
    result.detail +=
        (result.detail.empty() ? "" : "; ") + ("NOT UNDONE, its keeper goes on trying: " + undone.error().message);
    return result;
  }
  if (intent.action == "recover" && result.outcome == Outcome::success)
    if (const auto kept =
            state_.note_recovered(options_.session, profile_.digest, intent.recipe.at("service").get<std::string>());
        !kept)
      result = with(std::move(result), Outcome::failure, kept.error().message);
  return result;
}

}  // namespace leafcutter::node::host
