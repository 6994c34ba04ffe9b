// A chain of faults under a virtual clock: what goes in, what comes out and when, what the faults said.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "make_fault.hpp"
#include "node/proxy/datagram_chain.hpp"
#include "node/proxy/stream_chain.hpp"

namespace leafcutter::node::proxy {

using namespace std::chrono_literals;

class StrikeLog final : public StrikeSink {
 public:
  struct Line {
    std::string fault;
    Direction direction;
    std::uint64_t operation, offset, bytes;
    Duration delay;
    bool operator==(const Line&) const = default;
  };
  void struck(const ArmedFault& fault, Direction direction, const Strike& strike) override {
    lines.push_back({fault.fault.id, direction, strike.operation, strike.offset, strike.bytes, strike.delay});
  }
  void passed_over(const ArmedFault& fault, Direction) override { ++over[fault.fault.id]; }
  std::size_t count(const std::string& id) const {
    std::size_t n = 0;
    for (const auto& line : lines) n += line.fault == id;
    return n;
  }
  std::vector<Line> lines;
  std::map<std::string, int> over;
};

/// Arms sets one after the other, as a link does.
class Armory {
 public:
  const std::vector<ArmedFaultPtr>& arm_next(std::vector<Fault> faults, Transport transport) {
    auto good = checked({"", std::move(faults)}, transport);
    if (!good) throw std::invalid_argument(good.error().message);
    set_ = arm(
        std::move(*good), set_.get(), [](const std::string&) { return std::make_shared<FaultCounters>(); },
        [](const std::string&, const Bandwidth& b) {
          return std::make_shared<SharedPacer>(b.bytes_per_second, b.burst_bytes);
        });
    return set_->faults;
  }

 private:
  ArmedSetPtr set_;
};

struct ChainOptions {
  std::uint64_t seed = 1, connection = 1;
  Direction direction = Direction::to_upstream;
};

/// What left: bytes, or an end in words.
struct Left {
  Duration at;
  std::string what;
  bool operator==(const Left&) const = default;
};

class StreamRig {
 public:
  explicit StreamRig(std::vector<Fault> faults, ChainOptions options = {})
      : chain_({options.seed, "link", options.connection, options.direction, {}}, log) {
    replace(std::move(faults));
  }
  void replace(std::vector<Fault> faults) {
    chain_.replace(armory_.arm_next(std::move(faults), Transport::tcp), now());
    collect();
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto room = std::min(chain_.room(), bytes.size());
      if (room == 0) return;
      chain_.push(Chunk::copy_of(bytes.substr(0, room), offset_, now()), now());
      offset_ += room;
      bytes.remove_prefix(room);
      chain_.pump(now());
      collect();
    }
  }
  void end(StreamEnd end = StreamEnd::finished) {
    chain_.push(Chunk::ending(end, offset_, now()), now());
    chain_.pump(now());
    collect();
  }
  /// Lets the time pass, waking the chain exactly when it asks.
  void pass(Duration span) {
    const auto until = clock_ + span;
    for (auto wake = chain_.wake(); wake && *wake - start_ <= until; wake = chain_.wake()) {
      clock_ = std::max(clock_, Duration{*wake - start_});
      chain_.pump(now());
      collect();
    }
    clock_ = until;
  }
  std::string text() const {
    std::string all;
    for (const auto& one : left) all += one.what;
    return all;
  }
  StreamChain& chain() { return chain_; }
  Duration clock() const { return clock_; }
  Time now() const { return start_ + clock_; }

  StrikeLog log;
  std::vector<Left> left;

 private:
  void collect() {
    static const std::map<StreamEnd, std::string> ends{
        {StreamEnd::finished, "<end>"},          {StreamEnd::reset, "<reset>"},
        {StreamEnd::cut_close, "<cut>"},         {StreamEnd::cut_reset, "<cut rst>"},
        {StreamEnd::cut_client, "<rst client>"}, {StreamEnd::cut_upstream, "<rst up>"}};
    while (!chain_.out().empty()) {
      const auto chunk = chain_.out().pop();
      left.push_back({clock_, chunk.is_end() ? ends.at(chunk.end) : std::string(chunk.bytes())});
    }
  }
  Time start_ = Time{} + 1000h;
  Duration clock_{0};
  Armory armory_;
  StreamChain chain_;
  std::uint64_t offset_ = 0;
};

class DatagramRig {
 public:
  explicit DatagramRig(std::vector<Fault> faults, ChainOptions options = {})
      : chain_({options.seed, "link", options.connection, options.direction, {}}, log) {
    replace(std::move(faults));
  }
  void replace(std::vector<Fault> faults) {
    chain_.replace(armory_.arm_next(std::move(faults), Transport::udp), start_ + clock_);
    collect();
  }
  void send(const std::string& bytes) {
    chain_.push(bytes, start_ + clock_);
    chain_.pump(start_ + clock_);
    collect();
  }
  void pass(Duration span) {
    const auto until = clock_ + span;
    for (auto wake = chain_.wake(); wake && *wake - start_ <= until; wake = chain_.wake()) {
      clock_ = std::max(clock_, Duration{*wake - start_});
      chain_.pump(start_ + clock_);
      collect();
    }
    clock_ = until;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const auto& one : left) all.push_back(one.what);
    return all;
  }
  DatagramChain& chain() { return chain_; }

  StrikeLog log;
  std::vector<Left> left;

 private:
  void collect() {
    for (auto& bytes : chain_.take_out()) left.push_back({clock_, std::move(bytes)});
  }
  Time start_ = Time{} + 1000h;
  Duration clock_{0};
  Armory armory_;
  DatagramChain chain_;
};

}  // namespace leafcutter::node::proxy
