// What a campaign has asked for and what came of it: every run once, however many attempts it takes. Asking for a run
// whose result is known (from before a restart, say) answers at once and orders nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/campaign/order.hpp"
#include "coordinator/campaign/run_name.hpp"

namespace leafcutter::coordinator {

class RunBook {
 public:
  /// How often a run is tried again after the runner, not the services, failed.
  static constexpr unsigned retries = 2;

  struct Wish {
    std::string run;
    scenarios::Address address;
    Purpose purpose = Purpose::explore;
    Plan plan;
    std::string avoid_slot;
  };

  /// A result of before. Before anything is asked for.
  void remember(const Result& result);

  /// The result that stands, or nullptr: then an order was or is now given. The pointer stays valid.
  const Result* ask(const Wish& wish);

  /// The result that stands, without asking.
  const Result* find(const std::string& run) const;

  bool wants(const std::string& execution) const;

  /// False when it is not wanted. A result that is worth another try orders the next attempt.
  bool take(const Result& result);

  /// Forgets the runs of `purpose` that have no result yet; their executions.
  std::vector<std::string> drop(Purpose purpose);

  /// Orders given since the last call, the most urgent first.
  std::vector<Order> orders();

  std::uint64_t taken() const { return taken_; }

 private:
  struct Run {
    Wish wish;
    std::map<unsigned, Result> attempts;
    std::optional<unsigned> standing;
    unsigned ordered = 0;  ///< attempt
  };
  void settle(Run& run);

  std::map<std::string, std::map<unsigned, Result>> remembered_;
  std::map<std::string, Run> runs_;
  std::vector<Order> orders_;
  std::uint64_t taken_ = 0;
};

}  // namespace leafcutter::coordinator
