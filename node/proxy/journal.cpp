#include "node/proxy/journal.hpp"

namespace leafcutter::node::proxy {
namespace {

/// Of one ring before the next gets its turn.
constexpr int events_in_a_row = 1024;

}  // namespace

Event event_of(const EventRecord& record) {
  Event event;
  event.at = record.at;
  event.kind = record.kind;
  event.link = record.link ? std::string_view(*record.link) : std::string_view();
  event.phase = record.set ? std::string_view(record.set->set.phase) : std::string_view();
  event.connection = record.connection;
  event.direction = record.direction;
  if (record.fault) {
    event.fault = record.fault->fault.id;
    event.effect = kind_of(record.fault->fault.effect);
    event.activation = record.fault->activation;
  }
  event.operation = record.operation;
  event.offset = record.offset;
  event.bytes = record.bytes;
  event.bytes_back = record.bytes_back;
  event.delay = record.delay;
  event.cause = record.cause;
  event.detail = record.detail;
  return event;
}

Journal::Journal(EventHook hook, std::vector<EventRing*> rings) : hook_(std::move(hook)), rings_(std::move(rings)) {
  thread_ = std::thread([this] { run(); });
}

Journal::~Journal() {
  ending_ = true;
  wake();
  thread_.join();
}

void Journal::wake() {
  signals_.fetch_add(1, std::memory_order_release);
  signals_.notify_one();
}

bool Journal::bring_some() {
  bool brought = false;
  for (auto* ring : rings_)
    for (int i = 0; i < events_in_a_row; ++i) {
      if (!ring->pop([this](const EventRecord& record) { hook_(event_of(record)); })) break;
      brought = true;
    }
  return brought;
}

void Journal::run() {
  for (;;) {
    const auto signals = signals_.load(std::memory_order_acquire);
    const bool ending = ending_;
    const bool brought = bring_some();
    rounds_.fetch_add(1, std::memory_order_release);
    rounds_.notify_all();
    if (brought) continue;
    if (ending) return;
    signals_.wait(signals, std::memory_order_acquire);
  }
}

void Journal::flush() {
  std::vector<std::uint64_t> written;
  for (const auto* ring : rings_) written.push_back(ring->written());
  for (;;) {
    const auto rounds = rounds_.load(std::memory_order_acquire);
    bool all = true;
    for (std::size_t i = 0; i < rings_.size(); ++i) all = all && rings_[i]->read() >= written[i];
    if (all) return;
    wake();
    rounds_.wait(rounds, std::memory_order_acquire);
  }
}

}  // namespace leafcutter::node::proxy
