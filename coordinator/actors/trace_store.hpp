// The traces that are coming in: chunks by execution, in memory up to a bound and in nameless files beyond it. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "protocols/stream.hpp"

namespace leafcutter::coordinator {

class TraceStore {
 public:
  struct Limits {
    std::size_t memory_bytes = 0, execution_bytes = 0;
    std::string folder;
  };
  struct Taken {
    protocols::Ack ack;
    bool finished = false;  ///< take() it
  };
  struct Trace {
    std::uint64_t events = 0;
    bool complete = false;
    std::string chunks;
  };

  explicit TraceStore(Limits limits) : limits_(std::move(limits)) {}

  void expect(const std::string& execution) { traces_.try_emplace(execution); }
  void forget(const std::string& execution);

  /// Errors: io (the disk is full; nothing was stored), protocol (the chunk is damaged).
  base::Expected<Taken> store(const protocols::BatchHeader& header, std::string_view chunk);

  /// The finished trace; it is not expected any more.
  base::Expected<Trace> take(const std::string& execution);

  std::size_t memory() const { return memory_; }
  std::size_t expected() const { return traces_.size(); }

 private:
  struct Unfinished {
    std::uint64_t next = 0;
    std::uint64_t bytes = 0;
    bool complete = false, truncated = false;
    std::string memory;
    base::UniqueFd file;
  };
  base::Status append(Unfinished& trace, std::string_view chunk);
  base::Status spill();

  Limits limits_;
  std::map<std::string, Unfinished> traces_;
  std::size_t memory_ = 0;
};

}  // namespace leafcutter::coordinator
