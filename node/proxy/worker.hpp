// One thread that carries bytes: an epoll loop with timers, commands from outside, and what its connections share.
// Raw epoll, edge-triggered, not Boost.Asio: measured here, the same copying relay takes 9.7 us for a 64-byte echo on
// it and 18.1 us on Asio 1.74 (haproxy: 19.8), and splice(2) needs readiness without a read anyway.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/proxy/block_pool.hpp"
#include "node/proxy/event_ring.hpp"
#include "node/proxy/journal.hpp"
#include "node/proxy/link.hpp"
#include "node/proxy/pipe_pool.hpp"
#include "node/proxy/timer_heap.hpp"

namespace leafcutter::node::proxy {

class Resolver;

/// Something with a descriptor in the worker's epoll.
class Source {
 public:
  virtual ~Source() = default;
  virtual void ready(std::uint32_t events) = 0;
};

/// Something that is to get its turn later in the same round of the loop, once.
class Pumped {
 public:
  virtual ~Pumped() = default;
  virtual void pump() = 0;

 private:
  friend class Worker;
  bool scheduled_ = false, buried_ = false;
};

/// The part of a link that one worker has.
class LinkWorker {
 public:
  virtual ~LinkWorker() = default;
  /// The set in force, and whether to accept, from now on.
  virtual void apply(ArmedSetPtr set, bool listening) = 0;
  /// Ends every connection.
  virtual void end_all() = 0;
};

class Worker {
 public:
  Worker(std::size_t event_queue, bool splice, Resolver& resolver);
  ~Worker();
  bool usable() const { return epoll_ && mailbox_fd_; }
  /// Events go to `journal`, or, when there is none, at once to `immediate`.
  void start(Journal* journal, EventHook immediate = {});
  /// Stops the thread, after all commands posted before.
  void stop();

  /// From any thread. Commands run in order.
  void post(std::function<void()> command);

  // --- the worker's own thread from here on ---

  Time now() const { return now_; }
  /// What has come by now counts as having come now, however long ago the round began.
  Time refresh() { return now_ = std::chrono::steady_clock::now(); }
  bool add(int fd, std::uint32_t events, Source& source);
  /// Before it is closed: epoll watches the socket, not the descriptor, and a process that was forked meanwhile may
  /// hold the socket open until it calls exec.
  void remove(int fd);
  TimerHeap& timers() { return timers_; }
  void schedule(Pumped& pumped);
  /// It gets no turn any more, and is destroyed when this round is over or later: events of the round may still name
  /// it.
  void bury(std::shared_ptr<Pumped> dead);
  std::span<char> scratch() { return scratch_; }
  const std::shared_ptr<PipePool>& pipes() { return pipes_; }
  BlockPool& blocks() { return blocks_; }
  bool splices() const { return splice_; }
  Resolver& resolver() { return resolver_; }

  /// Calls `retry` when a descriptor was freed here, or after a while.
  void await_descriptors(std::function<void()> retry);
  void descriptor_freed() { descriptors_freed_ = true; }

  /// Whether anybody hears of events.
  bool recording() const { return journal_ != nullptr || immediate_; }
  void emit(EventRecord record);
  EventRing& ring() { return ring_; }

  std::unordered_map<const Link*, std::unique_ptr<LinkWorker>>& links() { return links_; }

 private:
  class Mailbox;
  class Alarm;
  class ScarcityTimer;

  void run();
  void round();
  void wait_for_events();
  void run_commands();
  void run_due();
  void run_ready();
  void retry_scarce();

  std::mutex mutex_;
  std::vector<std::function<void()>> commands_;
  bool stopping_ = false;

  EventRing ring_;
  bool splice_;
  Resolver& resolver_;
  Journal* journal_ = nullptr;
  EventHook immediate_;
  bool emitted_ = false;
  base::UniqueFd epoll_, mailbox_fd_;
  std::unique_ptr<Mailbox> mailbox_;
  std::unique_ptr<Alarm> alarm_;  ///< null: there is none, and long waits are less exact
  std::unique_ptr<ScarcityTimer> scarcity_;
  Time now_{};
  TimerHeap timers_;
  std::vector<epoll_event> events_;
  std::vector<Pumped*> ready_, running_;
  std::vector<std::shared_ptr<Pumped>> dead_;
  std::vector<char> scratch_;
  std::shared_ptr<PipePool> pipes_ = std::make_shared<PipePool>();
  BlockPool blocks_;
  std::vector<std::function<void()>> scarce_;
  bool descriptors_freed_ = false;
  std::unordered_map<const Link*, std::unique_ptr<LinkWorker>> links_;
  std::thread thread_;
};

}  // namespace leafcutter::node::proxy
