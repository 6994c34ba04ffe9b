// Puts what is observed in a leaf into order: numbers events within their lane, keeps the vector clocks and hands each
// event to the sink. Thread-safe; the data path of the system under test never waits for a sink.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "protocols/event.hpp"

namespace leafcutter::node {

using protocols::Event;
using protocols::Value;
using protocols::VectorClock;

class Recorder {
 public:
  using Sink = std::function<void(Event)>;  ///< called in recording order, under the recorder's lock: must not block
  using Clock = std::function<std::chrono::nanoseconds()>;  ///< monotonic, since the leaf began

  Recorder(Clock clock, Sink sink);

  /// Records an event of `lane` that happened after everything in `causes`; returns the event's own clock, to be handed
  /// to whatever it causes.
  VectorClock record(const std::string& lane, const std::string& kind, Value attrs,
                     std::initializer_list<VectorClock> causes = {});

  /// As `record`, of several events of one lane, if `happened` says that what they are about happened. It is asked
  /// under the recorder's lock, and must not block: what follows from it cannot be recorded before them.
  struct Fact {
    std::string kind;
    Value attrs;
  };
  bool record_if(const std::string& lane, const std::function<bool()>& happened, std::vector<Fact> facts);

  /// A message reached `lane`: its later events happened after `cause`.
  void deliver(const std::string& lane, const VectorClock& cause);

  /// What `lane` has seen so far; the cause of a message that it sends now.
  VectorClock now(const std::string& lane) const;

  std::uint64_t recorded() const;

 private:
  /// Under the lock, with the lane's clock as it is.
  VectorClock append(const std::string& lane, const std::string& kind, Value attrs, std::chrono::nanoseconds at);

  Clock clock_;
  Sink sink_;
  mutable std::mutex mutex_;
  std::map<std::string, VectorClock> lanes_;
  std::uint64_t recorded_ = 0;
};

}  // namespace leafcutter::node
