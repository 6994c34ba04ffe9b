#include "coordinator/ledger/result_codec.hpp"

#include <array>

namespace leafcutter::coordinator {

using base::Error;
using base::ErrorCode;

namespace {

Error damaged(const std::string& what) { return {ErrorCode::io, "the ledger holds a damaged record: " + what, {}}; }

Value violations_value(const std::vector<Violation>& violations) {
  auto list = Value::array();
  for (const auto& violation : violations) {
    auto evidence = Value::array();
    for (const auto& event : violation.events) evidence.push_back({event.lane, event.seq});
    list.push_back({{"property", violation.property},
                    {"message", violation.message},
                    {"key", violation.key},
                    {"events", evidence}});
  }
  return list;
}

std::vector<Violation> violations_from(const Value& list) {
  std::vector<Violation> violations;
  for (const auto& entry : list) {
    Violation violation{entry.at("property"), entry.at("message"), entry.at("key"), {}};
    for (const auto& event : entry.at("events")) violation.events.push_back({event.at(0), event.at(1)});
    violations.push_back(std::move(violation));
  }
  return violations;
}

/// Runs a reader of our own records; nlohmann throws where one is not as it was written.
template <class Read>
auto guarded(const std::string& what, Read read) -> base::Expected<decltype(read())> {
  try {
    return read();
  } catch (const Value::exception& error) {
    return damaged(what + ": " + error.what());
  }
}

}  // namespace

std::string dump(const Value& value) { return value.dump(-1, ' ', false, Value::error_handler_t::replace); }

std::string_view name(Purpose purpose) {
  switch (purpose) {
    case Purpose::explore: return "explore";
    case Purpose::confirm: return "confirm";
    case Purpose::control: return "control";
    case Purpose::minimize: return "minimize";
    case Purpose::replay: return "replay";
  }
  return "?";
}

bool parse(std::string_view text, Purpose& out) {
  for (const auto purpose : {Purpose::explore, Purpose::confirm, Purpose::control, Purpose::minimize, Purpose::replay})
    if (name(purpose) == text) {
      out = purpose;
      return true;
    }
  return false;
}

Value to_value(const Result& result) {
  auto sites = Value::array();
  for (const auto& [site, count] : result.sites) sites.push_back({site.lane, site.operation, site.resource, count});
  return {{"address", result.address},
          {"purpose", name(result.purpose)},
          {"plan", scenarios::to_value(result.plan)},
          {"verdict", scenarios::name(result.verdict)},
          {"reason", scenarios::name(result.reason)},
          {"detail", result.detail},
          {"fired", result.fired},
          {"sites", sites},
          {"violations", violations_value(result.violations)},
          {"trace", result.trace},
          {"node", result.node},
          {"events", result.events},
          {"wall_ms", result.wall_ms}};
}

base::Expected<Result> result_from(const std::string& execution, const Value& value) {
  const auto what = "result " + execution;
  auto read = guarded(what, [&] {
    Result result;
    result.execution = execution;
    result.address = value.at("address");
    result.detail = value.at("detail");
    result.fired = value.at("fired").get<std::vector<bool>>();
    for (const auto& entry : value.at("sites"))
      result.sites.push_back({{entry.at(0), entry.at(1), entry.at(2)}, entry.at(3)});
    result.violations = violations_from(value.at("violations"));
    result.trace = value.at("trace");
    result.node = value.at("node");
    result.events = value.at("events");
    result.wall_ms = value.at("wall_ms");
    return result;
  });
  if (!read) return read;
  auto names = guarded(what, [&] {
    return std::array<std::string, 3>{value.at("purpose"), value.at("verdict"), value.at("reason")};
  });
  if (!names) return names.error();
  if (!parse((*names)[0], read->purpose) || !scenarios::parse((*names)[1], read->verdict) ||
      !scenarios::parse((*names)[2], read->reason))
    return damaged(what + ": " + (*names)[0] + ", " + (*names)[1] + ", " + (*names)[2]);
  const auto plan_value = value.find("plan");
  if (plan_value == value.end()) return damaged(what + ": no plan");
  auto plan = scenarios::plan_from(*plan_value);
  if (!plan) return damaged(what + ": " + plan.error().message);
  read->plan = std::move(*plan);
  return read;
}

Value to_value(const CampaignRow& row) {
  return {{"name", row.name},
          {"scenario_file", row.scenario_file},
          {"scenario_text", row.scenario_text},
          {"identity", row.identity},
          {"variant", row.variant},
          {"seed", row.seed}};
}

base::Expected<CampaignRow> campaign_row_from(const Value& value) {
  return guarded("campaign", [&] {
    CampaignRow row;
    row.name = value.at("name");
    row.scenario_file = value.at("scenario_file");
    row.scenario_text = value.at("scenario_text");
    row.identity = value.at("identity");
    row.variant = value.at("variant");
    row.seed = value.at("seed");
    return row;
  });
}

}  // namespace leafcutter::coordinator
