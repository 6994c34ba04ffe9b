// Epoch headers as values: what `replay` reads when there is no database.
#include "coordinator/search/epochs.hpp"

namespace leafcutter::coordinator {
namespace {

constexpr const char* kind_names[] = {"baseline", "singles", "pairs"};

Value site_counts(const std::vector<SiteCount>& sites) {
  auto list = Value::array();
  for (const auto& [site, count] : sites) list.push_back({site.lane, site.operation, site.resource, count});
  return list;
}

// Throws what nlohmann throws on a value of the wrong shape; epoch_header_from() makes an Error of it.
std::vector<SiteCount> site_counts_from(const Value& list) {
  std::vector<SiteCount> sites;
  for (const auto& entry : list)
    sites.push_back({{entry.at(0).get<std::string>(), entry.at(1).get<std::string>(), entry.at(2).get<std::string>()},
                     entry.at(3).get<std::uint32_t>()});
  return sites;
}

base::Error bad(const std::string& why) { return {base::ErrorCode::bad_input, "not an epoch header: " + why, {}}; }

base::Status read_pairs(const Value& value, EpochHeader& header) {
  for (const auto& pair : value.at("pairs")) {
    const auto first = pair.at(0).get<std::uint32_t>(), second = pair.at(1).get<std::uint32_t>();
    if (first >= header.candidates.size() || second >= header.candidates.size())
      return bad("pair " + pair.dump() + " names a candidate beyond the " + std::to_string(header.candidates.size()) +
                 " there are");
    header.pairs.emplace_back(first, second);
  }
  if (header.kind == EpochKind::pairs) header.second_order.assign(header.pairs.size(), false);
  for (const auto& index : value.at("second_order")) {
    const auto pair = index.get<std::uint64_t>();
    if (pair >= header.second_order.size())
      return bad("second_order names pair " + index.dump() + ", which is not there");
    header.second_order[pair] = true;
  }
  return base::ok();
}

base::Status read_kind(const Value& value, EpochHeader& header) {
  const auto kind = value.at("kind").get<std::string>();
  for (std::size_t i = 0; i < std::size(kind_names); ++i)
    if (kind == kind_names[i]) {
      header.kind = static_cast<EpochKind>(i);
      return base::ok();
    }
  return bad("kind is \"" + kind + "\"; expected baseline, singles or pairs");
}

base::Expected<EpochHeader> read(const Value& value) {
  EpochHeader header;
  header.campaign = value.at("campaign").get<std::string>();
  header.seed = value.at("seed").get<std::uint64_t>();
  header.number = value.at("number").get<std::uint32_t>();
  if (const auto status = read_kind(value, header); !status.ok()) return status.error();
  header.variant = value.at("variant").get<std::string>();
  header.scenario = value.at("scenario").get<std::string>();
  header.sites = site_counts_from(value.at("sites"));
  header.ever = site_counts_from(value.at("ever"));
  for (const auto& candidate : value.at("candidates")) {
    auto fault = scenarios::fault_from(candidate);
    if (!fault.ok()) return fault.error();
    header.candidates.push_back(*std::move(fault));
  }
  if (const auto status = read_pairs(value, header); !status.ok()) return status.error();
  for (const auto& [reason, count] : value.at("skipped").items()) header.skipped[reason] = count.get<std::uint64_t>();
  header.leaves = value.at("leaves").get<std::uint64_t>();
  const auto most = header.kind == EpochKind::pairs     ? header.pairs.size()
                    : header.kind == EpochKind::singles ? header.candidates.size()
                                                        : header.leaves;
  if (header.leaves > most)
    return bad("it announces " + std::to_string(header.leaves) + " leaves but describes " + std::to_string(most));
  return header;
}

}  // namespace

Value to_value(const EpochHeader& header) {
  auto candidates = Value::array(), pairs = Value::array(), second_order = Value::array();
  for (const auto& fault : header.candidates) candidates.push_back(scenarios::to_value(fault));
  for (const auto& [first, second] : header.pairs) pairs.push_back({first, second});
  for (std::size_t i = 0; i < header.second_order.size(); ++i)
    if (header.second_order[i]) second_order.push_back(i);
  return {{"campaign", header.campaign},
          {"seed", header.seed},
          {"number", header.number},
          {"kind", kind_names[static_cast<std::size_t>(header.kind)]},
          {"variant", header.variant},
          {"scenario", header.scenario},
          {"sites", site_counts(header.sites)},
          {"ever", site_counts(header.ever)},
          {"candidates", std::move(candidates)},
          {"pairs", std::move(pairs)},
          {"second_order", std::move(second_order)},
          {"skipped", header.skipped},
          {"leaves", header.leaves}};
}

base::Expected<EpochHeader> epoch_header_from(const Value& value) {
  if (!value.is_object()) return bad("it is not an object");
  try {
    return read(value);
  } catch (const Value::exception& error) {
    return bad(error.what());
  }
}

}  // namespace leafcutter::coordinator
