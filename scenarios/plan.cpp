#include "scenarios/plan.hpp"

#include <charconv>
#include <limits>

#include "base/digest.hpp"

namespace leafcutter::scenarios {
namespace {

base::Error bad(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

/// The string field `name` of `object`, or nullptr.
const std::string* text_field(const Value& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
}

}  // namespace

std::string Site::text() const { return lane + " " + operation + " " + resource; }

std::string Fault::text() const {
  auto out = kind;
  for (const auto& [name, value] : params.items())
    out += (out == kind ? "(" : ", ") + name + "=" +
           (value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Value::error_handler_t::replace));
  if (!params.empty()) out += ")";
  out += " at " + site.lane + " " + site.operation;
  if (!aim) return out + " " + site.resource + " #" + std::to_string(occurrence);
  const auto narrowed = aim->text();
  return narrowed.empty() ? out : out + " " + narrowed;
}

Value to_value(const Fault& fault) {
  Value out = {
      {"kind", fault.kind},
      {"site", {{"lane", fault.site.lane}, {"operation", fault.site.operation}, {"resource", fault.site.resource}}},
      {"occurrence", fault.occurrence},
      {"params", fault.params}};
  if (fault.aim) out["aim"] = to_value(*fault.aim);
  return out;
}

Value to_value(const Plan& plan) {
  auto faults = Value::array();
  for (const auto& fault : plan.faults) faults.push_back(to_value(fault));
  return {{"faults", std::move(faults)}, {"schedule", plan.schedule}, {"variant", plan.variant}};
}

base::Expected<Fault> fault_from(const Value& value) {
  if (!value.is_object()) return bad("a fault is an object with kind, site, occurrence and params");
  Fault fault;
  const auto* kind = text_field(value, "kind");
  const auto site = value.find("site");
  if (kind == nullptr || site == value.end() || !site->is_object()) return bad("a fault needs a kind and a site");
  const auto* lane = text_field(*site, "lane");
  const auto* operation = text_field(*site, "operation");
  const auto* resource = text_field(*site, "resource");
  if (lane == nullptr || operation == nullptr || resource == nullptr)
    return bad("a fault's site needs lane, operation and resource, all text");
  fault.kind = *kind;
  fault.site = {*lane, *operation, *resource};
  const auto occurrence = value.find("occurrence");
  if (occurrence == value.end() || !occurrence->is_number_unsigned() || occurrence->get<std::uint64_t>() == 0 ||
      occurrence->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
    return bad("a fault's occurrence is a whole number from 1");
  fault.occurrence = occurrence->get<std::uint32_t>();
  const auto params = value.find("params");
  if (params != value.end()) {
    if (!params->is_object()) return bad("a fault's params are an object");
    fault.params = *params;
  }
  if (const auto given = value.find("aim"); given != value.end()) {
    auto aim = aim_from(*given);
    if (!aim) return aim.error();
    fault.aim = std::move(*aim);
  }
  return fault;
}

base::Expected<Plan> plan_from(const Value& value) {
  if (!value.is_object()) return bad("a plan is an object with faults, schedule and variant");
  Plan plan;
  const auto faults = value.find("faults");
  if (faults == value.end() || !faults->is_array()) return bad("a plan needs a list of faults");
  for (const auto& entry : *faults) {
    auto fault = fault_from(entry);
    if (!fault) return fault.error();
    plan.faults.push_back(std::move(*fault));
  }
  const auto schedule = value.find("schedule");
  if (schedule != value.end()) {
    if (!schedule->is_array()) return bad("a plan's schedule is a list of text");
    for (const auto& entry : *schedule) {
      if (!entry.is_string()) return bad("a plan's schedule is a list of text");
      plan.schedule.push_back(entry.get<std::string>());
    }
  }
  if (const auto* variant = text_field(value, "variant")) plan.variant = *variant;
  return plan;
}

// Names of files need not be UTF-8: other bytes are replaced, not refused.
std::string digest(const Plan& plan) {
  return base::sha256(to_value(plan).dump(-1, ' ', false, Value::error_handler_t::replace)).substr(0, 16);
}

std::string Address::text() const { return campaign + "/" + std::to_string(epoch) + "/" + std::to_string(index); }

base::Expected<Address> parse_address(const std::string& text) {
  const auto explain = [&] {
    return bad("\"" + text + "\" is not a leaf address: expected CAMPAIGN/EPOCH/INDEX, such as 3f2a91c0/1/17");
  };
  const auto first = text.find('/');
  const auto second = text.find('/', first == std::string::npos ? first : first + 1);
  if (first == std::string::npos || first == 0 || second == std::string::npos) return explain();
  Address address;
  address.campaign = text.substr(0, first);
  for (const char c : address.campaign)
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return explain();
  const auto number = [&](std::size_t from, std::size_t to, auto& out) {
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + to, out);
    return error == std::errc{} && end == text.data() + to && from < to;
  };
  if (!number(first + 1, second, address.epoch) || !number(second + 1, text.size(), address.index)) return explain();
  return address;
}

}  // namespace leafcutter::scenarios
