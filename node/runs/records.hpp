// The records of a run, a line of JSON each: what the journal holds, and what `leafcutter proxy` says on a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "node/proxy/event.hpp"
#include "node/runs/run.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node::runs {

using Time = std::chrono::steady_clock::time_point;

inline constexpr int journal_version = 1;

/// One record: {"type":"...","at_ms":12.345,...}. Keys come in the order in which they are added.
class RecordLine {
 public:
  explicit RecordLine(std::string_view type);
  RecordLine& add(std::string_view key, std::string_view text);
  RecordLine& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
  RecordLine& add(std::string_view key, std::uint64_t number);
  RecordLine& add_value(std::string_view key, const protocols::Value& value);
  /// Exact to the nanosecond.
  RecordLine& add_ms(std::string_view key, std::chrono::nanoseconds time);
  RecordLine& add_null(std::string_view key);
  /// With its newline.
  std::string text() &&;

 private:
  void key_text(std::string_view key);
  std::string line_;
};

/// What the journal calls such an event.
std::string_view record_type(proxy::EventKind kind);

/// "accepted", "struck", "passed-over", "connection-closed", ...: a decision or a change of a connection or link.
std::string event_record(const proxy::Event& event, Time start);

struct Endpoint {
  std::string proxy, address, upstream;
  proxy::Transport transport = proxy::Transport::tcp;
};

struct RunHeader {
  std::string file;
  std::uint64_t seed = 0;
  std::vector<Endpoint> endpoints;
};
std::string run_started_record(const Run& run, const RunHeader& header);
/// `start`: what times in records count from; `began`: when this document's first phase began.
std::string phase_started_record(const Run& run, const PhasePoint& point, Time now, Time start, Time began);

/// A fault that waited for `after` is in force.
std::string fault_begun_record(const std::string& proxy, const std::string& fault, const Awaited& after,
                               std::string_view phase, std::chrono::nanoseconds at);

std::string reloaded_record(const Run& run, const std::vector<Endpoint>& endpoints, std::chrono::nanoseconds at,
                            std::size_t changed);
std::string reload_failed_record(const std::vector<base::Error>& errors, std::chrono::nanoseconds at);

/// What was counted, of every link that there ever was; equal to the sums of the records.
using Totals = std::map<std::string, proxy::LinkStats>;
void add_to(proxy::LinkStats& sum, const proxy::LinkStats& more);
protocols::Value totals_value(const Totals& totals);

}  // namespace leafcutter::node::runs
