// Decisions that were made before, to be made again instead of drawing: who is passed over, which bytes or datagrams
// are struck, and for how long they are delayed. Values; built before the engine starts, and only read then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

/// Those of one fault on one connection and direction.
class FaultDecisions {
 public:
  struct Struck {
    std::uint64_t operation = 0, offset = 0, bytes = 0;
    Duration delay{0};
  };

  /// `by_operation`: datagrams are told apart by their number, bytes of a stream by their offset, as they may come in
  /// other chunks this time.
  explicit FaultDecisions(bool by_operation = false) : by_operation_(by_operation) {}

  void pass_over() { passed_over_ = true; }
  void strike(Struck struck) {
    const auto after = std::upper_bound(struck_.begin(), struck_.end(), struck,
                                        [this](const auto& a, const auto& b) { return start(a) < start(b); });
    struck_.insert(after, struck);
  }

  bool passed_over() const { return passed_over_; }
  /// Null: that one was not struck. For a strike at no byte: both 0.
  const Struck* at(std::uint64_t operation, std::uint64_t offset) const {
    const auto key = by_operation_ ? operation : offset;
    const auto after = std::upper_bound(struck_.begin(), struck_.end(), key,
                                        [this](std::uint64_t value, const Struck& one) { return value < start(one); });
    if (after == struck_.begin()) return nullptr;
    const auto& one = *std::prev(after);
    return by_operation_ ? (one.operation == key ? &one : nullptr)
                         : (key - one.offset < std::max<std::uint64_t>(1, one.bytes) ? &one : nullptr);
  }
  /// How many bytes from `offset` on are decided alike.
  std::uint64_t edge_after(std::uint64_t offset) const {
    if (by_operation_) return std::numeric_limits<std::uint64_t>::max();
    if (const auto* one = at(0, offset)) return one->offset + std::max<std::uint64_t>(1, one->bytes) - offset;
    const auto next = std::upper_bound(struck_.begin(), struck_.end(), offset,
                                       [](std::uint64_t value, const Struck& one) { return value < one.offset; });
    return next == struck_.end() ? std::numeric_limits<std::uint64_t>::max() : next->offset - offset;
  }

 private:
  std::uint64_t start(const Struck& one) const { return by_operation_ ? one.operation : one.offset; }
  bool by_operation_;
  bool passed_over_ = false;
  std::vector<Struck> struck_;  ///< sorted
};

class Decisions {
 public:
  struct Key {
    std::string link;
    std::uint64_t connection = 0;
    Direction direction = Direction::to_upstream;
    std::string fault;
    std::uint64_t activation = 1;  ///< see Event::activation
    auto tied() const { return std::tie(link, connection, direction, fault, activation); }
    bool operator<(const Key& other) const { return tied() < other.tied(); }
  };

  /// The connection was there: what is not recorded of it did not happen.
  void know(const std::string& link, std::uint64_t connection) { known_.emplace(link, connection); }
  FaultDecisions& of(const Key& key, bool by_operation) { return faults_.try_emplace(key, by_operation).first->second; }

  /// Null: nothing is known of the connection, and its faults are drawn.
  const FaultDecisions* find(const Key& key) const {
    static const FaultDecisions none;
    if (!known_.contains({key.link, key.connection})) return nullptr;
    const auto found = faults_.find(key);
    return found == faults_.end() ? &none : &found->second;
  }
  std::size_t connections() const { return known_.size(); }

 private:
  std::set<std::pair<std::string, std::uint64_t>> known_;
  std::map<Key, FaultDecisions> faults_;
};

}  // namespace leafcutter::node::proxy
