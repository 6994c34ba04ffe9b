// Runs one program to its end: bare, under strace, or under a real supervisor in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node/syscalls/filter_plan.hpp"

namespace leafcutter::bench {

struct Run {
  std::vector<std::string> argv;
  std::string folder;            ///< working folder, and the data folder
  node::FilterPlan filter = {};  ///< empty: bare
  scenarios::Plan plan = {};
  bool filter_that_allows = false;  ///< in place of `filter`: everything, which is the least that a filter costs
};

/// A program under way; killed with everything it started when it goes.
class Program {
 public:
  explicit Program(const Run& run);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// What it wrote, once it has ended; empty, and said on standard error, unless it ended with status 0.
  std::string output();
  std::uint64_t notified() const;  ///< calls that the supervisor counted; after the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leafcutter::bench
