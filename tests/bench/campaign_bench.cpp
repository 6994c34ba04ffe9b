// A whole campaign without anything to wait for: what the coordinator's decisions cost for each accepted result.
#include <benchmark/benchmark.h>

#include "tests/coordinator/campaign/world.hpp"

namespace leafcutter::coordinator {
namespace {

void campaign(benchmark::State& state) {
  std::size_t results = 0;
  for (auto _ : state) {
    synthetic::Keeper keeper(synthetic::scenario(2, 3, 1000), {});
    keeper.run_all();
    results += keeper.results.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(results));
}
BENCHMARK(campaign)->Unit(benchmark::kMillisecond);

void resume(benchmark::State& state) {
  synthetic::Keeper keeper(synthetic::scenario(2, 3, 1000), {});
  keeper.run_all();
  for (auto _ : state) keeper.restart();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(keeper.results.size()));
}
BENCHMARK(resume)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace leafcutter::coordinator
