#include <algorithm>

#include "node/proxy/datagram_chain.hpp"
#include "node/proxy/gilbert_elliott.hpp"
#include "node/proxy/latency_draw.hpp"

namespace leafcutter::node::proxy {
namespace {

class DatagramLatency final : public DatagramStage {
 public:
  DatagramLatency(Latency latency, const DrawKey& key) : draw_(std::move(latency), key) {}
  void take(Datagram datagram, GateResult gate, Time, DatagramExit& exit) override {
    Duration delay{0};
    if (gate.struck && !draw_.exhausted()) {
      delay = draw_.next(gate.operation, 0);
      exit.struck({gate.operation, 0, datagram.bytes.size(), delay});
    }
    const auto due = datagram.arrived + delay;
    exit.go_on(std::move(datagram), due);
  }

 private:
  LatencyDraw draw_;
};

class DatagramBandwidth final : public DatagramStage {
 public:
  DatagramBandwidth(const Bandwidth& bandwidth, std::shared_ptr<SharedPacer> shared)
      : queue_bytes_(bandwidth.queue_bytes),
        stalled_(bandwidth.bytes_per_second == 0),
        pacer_(shared ? std::move(shared)
                      : std::make_shared<SharedPacer>(bandwidth.bytes_per_second, bandwidth.burst_bytes)) {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    if (!gate.struck) {
      exit.go_on(std::move(datagram), now);
      return;
    }
    const auto size = datagram.bytes.size();
    if (stalled_ || pacer_->backlog(now) + size > std::max(queue_bytes_, size)) {
      exit.struck({gate.operation, 0, size, Duration{0}, "queue full"});
      return;
    }
    const auto due = pacer_->pass(size, datagram.arrived, now);
    exit.struck({gate.operation, 0, size, std::max(Duration{0}, Duration{due - now})});
    exit.go_on(std::move(datagram), due);
  }

 private:
  std::size_t queue_bytes_;
  bool stalled_;
  std::shared_ptr<SharedPacer> pacer_;
};

/// Loses what `loses` says: all (blackhole), some (loss), bursts.
template <class Loses>
class DatagramLoss final : public DatagramStage {
 public:
  DatagramLoss(Loses loses, const DrawKey& key)
      : loses_(std::move(loses)), recorded_(key.recorded), draws_(key, "value") {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    // The model steps on all the same: for what comes after the record.
    const bool drawn = gate.struck && loses_(draws_);
    const bool lost = recorded_ != nullptr ? recorded_->at(gate.operation, 0) != nullptr : drawn;
    if (lost)
      exit.struck({gate.operation, 0, datagram.bytes.size(), Duration{0}, "lost"});
    else
      exit.go_on(std::move(datagram), now);
  }

 private:
  Loses loses_;
  const FaultDecisions* recorded_;
  Draws draws_;
};

template <class Loses>
std::unique_ptr<DatagramStage> losing(Loses loses, const DrawKey& key) {
  return std::make_unique<DatagramLoss<Loses>>(std::move(loses), key);
}

class DatagramCorrupt final : public DatagramStage {
 public:
  DatagramCorrupt(Corrupt corrupt, const DrawKey& key) : corrupt_(std::move(corrupt)), draws_(key, "value") {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    auto& bytes = datagram.bytes;
    if (gate.struck && !bytes.empty()) {
      for (const auto& flip : corrupt_.flips)
        if (flip.offset < bytes.size()) invert(bytes, flip.offset, flip.mask, gate, exit);
      for (unsigned i = 0; corrupt_.flips.empty() && i < corrupt_.random_bits; ++i) {
        const auto bit = draws_.below(bytes.size() * 8);
        invert(bytes, bit / 8, static_cast<std::uint8_t>(1U << (bit % 8)), gate, exit);
      }
    }
    exit.go_on(std::move(datagram), now);
  }

 private:
  static void invert(std::string& bytes, std::uint64_t at, std::uint8_t mask, GateResult gate, DatagramExit& exit) {
    bytes[at] = static_cast<char>(static_cast<std::uint8_t>(bytes[at]) ^ mask);
    exit.struck({gate.operation, at, 1});
  }
  Corrupt corrupt_;
  Draws draws_;
};

class DatagramTruncate final : public DatagramStage {
 public:
  explicit DatagramTruncate(const Truncate& truncate) : keep_(truncate.keep_bytes) {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    if (gate.struck && datagram.bytes.size() > keep_) {
      exit.struck({gate.operation, keep_, datagram.bytes.size() - keep_});
      datagram.bytes.resize(keep_);
    }
    exit.go_on(std::move(datagram), now);
  }

 private:
  std::uint64_t keep_;
};

class DatagramDuplicate final : public DatagramStage {
 public:
  explicit DatagramDuplicate(const Duplicate& duplicate) : copies_(duplicate.copies) {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    if (gate.struck) {
      exit.struck({gate.operation, 0, datagram.bytes.size() * copies_});
      for (unsigned i = 0; i < copies_; ++i) exit.go_on(datagram, now);
    }
    exit.go_on(std::move(datagram), now);
  }

 private:
  unsigned copies_;
};

class DatagramReorder final : public DatagramStage {
 public:
  explicit DatagramReorder(const Reorder& reorder) : reorder_(reorder) {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    // One that is held lets no other be held until it has gone: two would only swap with each other.
    if (gate.struck && held_.empty()) {
      exit.struck({gate.operation, 0, datagram.bytes.size(), Duration{0}, "held back"});
      held_.push_back({std::move(datagram), now + reorder_.at_most, reorder_.gap});
      return;
    }
    exit.go_on(std::move(datagram), now);
    for (auto& one : held_)
      if (one.gap > 0) --one.gap;
    poll(now, exit);
  }
  void poll(Time now, DatagramExit& exit) override {
    if (held_.empty() || (held_.front().gap > 0 && held_.front().until > now)) return;
    auto one = std::move(held_.front());
    held_.clear();
    exit.go_on(std::move(one.datagram), now);
  }
  std::optional<Time> wake() const override {
    if (held_.empty()) return std::nullopt;
    return held_.front().until;
  }
  std::size_t cost() const override {
    return held_.empty() ? 0 : held_.front().datagram.bytes.size() + datagram_overhead;
  }
  std::vector<Datagram> release() override {
    std::vector<Datagram> all;
    for (auto& one : held_) all.push_back(std::move(one.datagram));
    held_.clear();
    return all;
  }

 private:
  struct HeldBack {
    Datagram datagram;
    Time until;
    unsigned gap;
  };
  Reorder reorder_;
  std::vector<HeldBack> held_;  ///< one at most
};

class DatagramFilter final : public DatagramStage {
 public:
  explicit DatagramFilter(std::unique_ptr<StreamOrDatagramFilter> filter) : filter_(std::move(filter)) {}
  void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) override {
    if (!gate.struck) {
      exit.go_on(std::move(datagram), now);
      return;
    }
    auto filtered = filter_->arrived(datagram.bytes);
    for (const auto& act : filtered.acts)
      exit.struck({gate.operation, 0, act.bytes, act.delay, act.detail, act.struck});
    for (auto& one : filtered.back) exit.go_back(std::move(one));
    for (auto& one : filtered.onward)
      exit.go_on({std::move(one.bytes), datagram.arrived}, datagram.arrived + one.delay);
    if (filtered.close) exit.close();
  }

 private:
  std::unique_ptr<StreamOrDatagramFilter> filter_;
};

struct DatagramStageMaker {
  const ArmedFault& fault;
  const DrawKey& key;
  using Made = std::unique_ptr<DatagramStage>;

  Made operator()(const Latency& e) const { return std::make_unique<DatagramLatency>(e, key); }
  Made operator()(const Jitter& e) const {
    return std::make_unique<DatagramLatency>(Latency{UniformTime{e.min, e.max}}, key);
  }
  Made operator()(const Bandwidth& e) const {
    return std::make_unique<DatagramBandwidth>(e, fault.pacers[static_cast<std::size_t>(key.direction)]);
  }
  Made operator()(const Blackhole&) const {
    return losing([](Draws&) { return true; }, key);
  }
  Made operator()(const Loss& e) const {
    return losing([p = e.probability](Draws& draws) { return draws.happens(p); }, key);
  }
  Made operator()(const BurstLoss& e) const {
    return losing([model = GilbertElliott(e)](Draws& draws) mutable { return model.loses(draws); }, key);
  }
  Made operator()(const Corrupt& e) const { return std::make_unique<DatagramCorrupt>(e, key); }
  Made operator()(const Truncate& e) const { return std::make_unique<DatagramTruncate>(e); }
  Made operator()(const Duplicate& e) const { return std::make_unique<DatagramDuplicate>(e); }
  Made operator()(const Reorder& e) const { return std::make_unique<DatagramReorder>(e); }
  Made operator()(const Filter& e) const {
    auto made = e.make->make({Transport::udp, key.direction, key.connection, Draws(key, "filter").raw(), key.link, 0});
    if (!made) return nullptr;
    return std::make_unique<DatagramFilter>(std::move(made));
  }
  template <class Other>
  Made operator()(const Other&) const {
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<DatagramStage> make_datagram_stage(const ArmedFault& fault, const DrawKey& key) {
  return std::visit(DatagramStageMaker{fault, key}, fault.fault.effect);
}

}  // namespace leafcutter::node::proxy
