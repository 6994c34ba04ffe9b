// Events on their way from one thread of the data path to the journal: a ring with one writer and one reader. When it
// is full the event is dropped and counted; the writer never waits.
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <new>
#include <string>

#include "node/proxy/armed.hpp"

namespace leafcutter::node::proxy {

/// An Event that owns what it speaks of.
struct EventRecord {
  Time at{};
  EventKind kind = EventKind::struck;
  Cause cause = Cause::none;
  Direction direction = Direction::to_upstream;
  std::uint64_t connection = 0, operation = 0, offset = 0, bytes = 0, bytes_back = 0;
  Duration delay{0};
  std::shared_ptr<const std::string> link;
  ArmedSetPtr set;
  ArmedFaultPtr fault;
  std::string detail;
};

class EventRing {
 public:
  /// Its memory is touched only as far as it is used.
  explicit EventRing(std::size_t capacity)
      : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 2)) - 1),
        memory_(static_cast<EventRecord*>(::operator new((mask_ + 1) * sizeof(EventRecord)))) {}
  ~EventRing() {
    while (pop([](const EventRecord&) {})) {
    }
  }
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;

  /// The writer's. Counts the event as dropped when there is no room.
  bool push(EventRecord record) {
    const auto write = written_.load(std::memory_order_relaxed);
    if (write - read_.load(std::memory_order_acquire) > mask_) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    new (&memory_.get()[write & mask_]) EventRecord(std::move(record));
    written_.store(write + 1, std::memory_order_release);
    return true;
  }

  /// The reader's: one record to `use`; false when there is none.
  template <class Use>
  bool pop(Use&& use) {
    const auto read = read_.load(std::memory_order_relaxed);
    if (read == written_.load(std::memory_order_acquire)) return false;
    auto& record = memory_.get()[read & mask_];
    use(record);
    record.~EventRecord();
    read_.store(read + 1, std::memory_order_release);
    return true;
  }

  std::uint64_t written() const { return written_.load(std::memory_order_acquire); }
  std::uint64_t read() const { return read_.load(std::memory_order_acquire); }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Release {
    void operator()(EventRecord* memory) const { ::operator delete(memory); }
  };
  std::size_t mask_;
  std::unique_ptr<EventRecord, Release> memory_;
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace leafcutter::node::proxy
