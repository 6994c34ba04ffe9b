// Results and their parts as JSON: what the ledger's rows hold.
#pragma once

#include <string>

#include "base/error.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

/// One line; bytes that are not UTF-8 are replaced.
std::string dump(const Value& value);

/// Everything of a result but its execution, which is the row's key.
Value to_value(const Result& result);
base::Expected<Result> result_from(const std::string& execution, const Value& value);

/// {name, scenario_file, scenario_text, identity, variant, seed}: what replay needs.
Value to_value(const CampaignRow& row);
base::Expected<CampaignRow> campaign_row_from(const Value& value);

bool parse(std::string_view text, Purpose& out);

}  // namespace leafcutter::coordinator
