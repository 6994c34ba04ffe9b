// A ledger in a fresh folder, and results to put into it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "coordinator/ledger/ledger.hpp"
#include "tests/coordinator/judge/outbox_traces.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::coordinator::testing {

using leafcutter::tests::Folder;

inline CampaignRow campaign_row(const std::string& name = "0a1b2c3d") {
  CampaignRow row;
  row.name = name;
  row.scenario_file = "/s/outbox.yaml";
  row.scenario_text = "leafcutter: 1\nname: outbox\n";
  row.identity = std::string(64, 'a');
  row.seed = 0xffff'ffff'ffff'fff7;  // beyond what SQLite's integers hold
  row.state = "running";
  row.started_unix = 1'700'000'000;
  row.elapsed_ms = 83'250;
  return row;
}

inline Result result_at(std::uint32_t epoch, std::uint64_t index, scenarios::Reason reason = scenarios::Reason::held,
                        unsigned attempt = 1, Purpose purpose = Purpose::explore) {
  Result result;
  result.address = scenarios::Address{"0a1b2c3d", epoch, index}.text();
  result.execution = result.address + "#" + std::to_string(attempt);
  result.purpose = purpose;
  result.plan = {{crash_fault()}, {}, "fixed"};
  result.reason = reason;
  result.verdict = scenarios::verdict_of(reason);
  result.detail = "what was seen";
  result.fired = {true};
  result.sites = {{{"shop", "write", "data:orders.log"}, 5}};
  result.violations = {{"an accepted order is announced", "never came", "order-2", {{"workload -> shop", 2}}}};
  result.trace = std::string(64, 'b');
  result.node = "here/0";
  result.events = 42;
  result.wall_ms = 731;
  return result;
}

inline std::unique_ptr<Ledger> open_ledger(const std::string& folder) {
  auto ledger = Ledger::open(folder);
  if (ledger) return std::move(*ledger);
  ADD_FAILURE() << ledger.error().text();
  return nullptr;
}

}  // namespace leafcutter::coordinator::testing
