#include "coordinator/campaign/run_book.hpp"

#include <algorithm>

namespace leafcutter::coordinator {
namespace {

using scenarios::Reason;

// The runner failed, not the services, and may not fail again. A service that is never ready in a baseline is most
// likely a mistake in the scenario: whoever waits for that message should not wait three times.
bool worth_another_try(const Result& result, const scenarios::Address& address, Purpose purpose) {
  if (result.verdict != scenarios::Verdict::infra) return false;
  switch (result.reason) {
    case Reason::node_lost:
    case Reason::runner_failed:
    case Reason::events_dropped: return true;
    case Reason::not_ready: return purpose != Purpose::explore || address.epoch != 0;
    default: return false;
  }
}

int urgency(Purpose purpose) {
  switch (purpose) {
    case Purpose::confirm:
    case Purpose::control: return 0;
    case Purpose::minimize: return 1;
    case Purpose::explore:
    case Purpose::replay: break;
  }
  return 2;
}

}  // namespace

void RunBook::remember(const Result& result) {
  if (const auto name = parse_execution(result.execution))
    if (remembered_[name->run].try_emplace(name->attempt, result).second) ++taken_;
}

const Result* RunBook::ask(const Wish& wish) {
  const auto [place, fresh] = runs_.try_emplace(wish.run);
  auto& run = place->second;
  if (fresh) {
    run.wish = wish;
    if (const auto known = remembered_.extract(wish.run)) run.attempts = std::move(known.mapped());
    settle(run);
  }
  return run.standing ? &run.attempts.at(*run.standing) : nullptr;
}

// Decides whether a result stands, and orders the next attempt when none does. Depends on the attempts alone, not on
// when each came.
void RunBook::settle(Run& run) {
  unsigned failures = 0;
  for (const auto& [attempt, result] : run.attempts) {
    if (worth_another_try(result, run.wish.address, run.wish.purpose) && failures++ < retries) continue;
    run.standing = attempt;
    return;
  }
  run.ordered = run.attempts.empty() ? 0 : run.attempts.rbegin()->first + 1;
  const auto& wish = run.wish;
  orders_.push_back({execution_of({wish.run, run.ordered}), wish.address, wish.purpose, wish.plan, wish.avoid_slot});
}

const Result* RunBook::find(const std::string& run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() || !found->second.standing ? nullptr
                                                         : &found->second.attempts.at(*found->second.standing);
}

bool RunBook::wants(const std::string& execution) const {
  const auto name = parse_execution(execution);
  if (!name) return false;
  const auto found = runs_.find(name->run);
  return found != runs_.end() && !found->second.standing && !found->second.attempts.contains(name->attempt);
}

bool RunBook::take(const Result& result) {
  if (!wants(result.execution)) return false;
  const auto name = parse_execution(result.execution);
  auto& run = runs_.at(name->run);
  run.attempts.emplace(name->attempt, result);
  ++taken_;
  settle(run);
  return true;
}

std::vector<std::string> RunBook::drop(Purpose purpose) {
  std::vector<std::string> dropped;
  std::erase_if(runs_, [&](const auto& entry) {
    const auto& run = entry.second;
    if (run.standing || run.wish.purpose != purpose) return false;
    dropped.push_back(execution_of({run.wish.run, run.ordered}));
    return true;
  });
  std::erase_if(orders_, [&](const Order& order) { return order.purpose == purpose; });
  return dropped;
}

std::vector<Order> RunBook::orders() {
  auto given = std::move(orders_);
  orders_.clear();
  std::stable_sort(given.begin(), given.end(),
                   [](const Order& a, const Order& b) { return urgency(a.purpose) < urgency(b.purpose); });
  return given;
}

}  // namespace leafcutter::coordinator
