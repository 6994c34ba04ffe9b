// A leaf's decisions made explicit: data, stored apart from results. What a node carries out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"
#include "scenarios/aim.hpp"

namespace leafcutter::scenarios {

using protocols::Value;

/// A stable name for a place where a fault can strike; never a wall time, never a pid.
struct Site {
  std::string lane;       ///< service or link id
  std::string operation;  ///< syscall family ("write"), "request", "connect" or "step"
  std::string resource;   ///< class: "data:orders.log", "POST /orders", "tcp", a step's label
  auto operator<=>(const Site&) const = default;
  std::string text() const;  ///< "shop write data:orders.log"
};

struct Fault {
  std::string kind;
  Site site;
  std::uint32_t occurrence = 1;  ///< counts from 1, in the lane's own order
  Value params = Value::object();
  /// A rule: the site names lane and family, and this says which calls; `occurrence` is 1 then. None: the site's n-th
  /// visit (for a lasting kind: from then on).
  std::optional<Aim> aim = {};
  bool operator==(const Fault&) const = default;
  std::string text() const;  ///< "crash-after at shop write data:orders.log #2"
};

struct Plan {
  std::vector<Fault> faults;          ///< in the order of the pair: first fault first
  std::vector<std::string> schedule;  ///< deviations from the base order; none yet: always empty
  std::string variant;
  bool operator==(const Plan&) const = default;
};

Value to_value(const Fault& fault);
Value to_value(const Plan& plan);
base::Expected<Fault> fault_from(const Value& value);
base::Expected<Plan> plan_from(const Value& value);

/// SHA-256 of the canonical JSON, first 16 hex digits.
std::string digest(const Plan& plan);

/// `campaign/epoch/index`.
struct Address {
  std::string campaign;
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  auto operator<=>(const Address&) const = default;
  std::string text() const;
};
base::Expected<Address> parse_address(const std::string& text);

/// How often a site was visited in a leaf.
struct SiteCount {
  Site site;
  std::uint32_t count = 0;
  bool operator==(const SiteCount&) const = default;
};

}  // namespace leafcutter::scenarios
