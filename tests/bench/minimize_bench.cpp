// Minimizing: what the state machine costs beside the executions it asks for, and how many it asks for.
#include <benchmark/benchmark.h>

#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

scenarios::Fault fault(std::int64_t n) {
  return {"errno", {"shop", "write", "data:a"}, static_cast<std::uint32_t>(n), {{"error", "EIO"}}};
}

void minimize(benchmark::State& state) {
  const auto faults = state.range(0), essential = state.range(1);
  scenarios::Plan plan;
  for (std::int64_t n = 1; n <= faults; ++n) plan.faults.push_back(fault(n));
  std::size_t executions = 0;
  for (auto _ : state) {
    Minimizer minimizer(plan, 10000);
    while (!minimizer.done()) {
      std::vector<Trial> outcomes;
      for (const auto& smaller : minimizer.next()) {
        std::int64_t present = 0;  // the essential faults are spread over the plan
        for (const auto& f : smaller.faults)
          present +=
              (f.occurrence - 1) % (faults / essential) == 0 && (f.occurrence - 1) / (faults / essential) < essential;
        outcomes.push_back(present == essential ? Trial::fails : Trial::passes);
      }
      minimizer.tell(outcomes);
    }
    executions = minimizer.executions();
  }
  state.counters["executions"] = static_cast<double>(executions);
}
BENCHMARK(minimize)->Args({2, 2})->Args({3, 2})->Args({10, 1})->Args({30, 3})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace leafcutter::coordinator
