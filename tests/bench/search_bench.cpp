// Deriving what to run: candidates, pairs, plans. The coordinator does this between epochs, and a replay before its one
// leaf.
#include <benchmark/benchmark.h>

#include "coordinator/search/epochs.hpp"
#include "tests/coordinator/search/derive.hpp"

namespace leafcutter::coordinator {
namespace {

// `sites` files that one service writes, and one kind of fault: as many candidates as files.
struct Wide {
  Scenario scenario;
  EpochHeader baseline, singles;
  std::vector<LeafOutcome> calm;
  std::vector<std::optional<LeafOutcome>> outcomes;

  explicit Wide(std::int64_t sites) {
    scenario.explore.faults = {{"errno", "shop", "write", "", {{"error", "EIO"}}}};
    scenario.explore.at_once = 2;
    LeafOutcome leaf;
    for (std::int64_t i = 0; i < sites; ++i) leaf.sites.push_back({{"shop", "write", "data:" + std::to_string(i)}, 1});
    calm.assign(3, leaf);
    baseline = baseline_epoch(scenario, "identity");
    singles = singles_epoch(scenario, baseline, calm, 1u << 20);
    leaf.fired = {true};
    outcomes.assign(singles.leaves, leaf);
  }
};

void singles(benchmark::State& state) {
  const Wide wide(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(singles_epoch(wide.scenario, wide.baseline, wide.calm, 1u << 20));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(singles)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void pairs(benchmark::State& state) {
  const Wide wide(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(pairs_epoch(wide.scenario, wide.singles, wide.outcomes, 1000));
  state.SetItemsProcessed(state.iterations() * state.range(0) * (state.range(0) - 1));
}
BENCHMARK(pairs)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void plan_and_digest(benchmark::State& state) {
  const auto header = synthetic::derive(synthetic::scenario()).pairs;
  std::uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(scenarios::digest(plan_of(header, index++ % header.leaves)));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(plan_and_digest);

void header_round_trip(benchmark::State& state) {
  const auto header = synthetic::derive(synthetic::scenario()).pairs;
  for (auto _ : state) benchmark::DoNotOptimize(epoch_header_from(Value::parse(to_value(header).dump())));
}
BENCHMARK(header_round_trip)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace leafcutter::coordinator
