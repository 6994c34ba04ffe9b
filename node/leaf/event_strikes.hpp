// Process faults, and partitions, that strike when an event was seen, whatever the workload is doing then. A thread of
// its own waits for them: an event is seen under the recorder's lock, where nothing may wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "node/observe/site_book.hpp"

namespace leafcutter::node {

class EventStrikes {
 public:
  using CarryOut = std::function<void(const SiteBook::Strike&)>;  ///< called from the thread, one after the other

  /// A plan without such a fault costs no thread.
  EventStrikes(SiteBook& sites, CarryOut carry_out);
  /// Returns when what has begun is carried out.
  ~EventStrikes();
  EventStrikes(const EventStrikes&) = delete;
  EventStrikes& operator=(const EventStrikes&) = delete;

 private:
  void run();

  SiteBook& sites_;
  CarryOut carry_out_;
  std::vector<SiteBook::Strike> waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wakes_ = 0;
  bool stop_ = false;
  std::uint64_t registration_ = 0;
  std::thread thread_;
};

}  // namespace leafcutter::node
