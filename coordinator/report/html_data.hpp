// What the page's script draws: traces as rows of a sequence diagram, and the list of leaves; bounded in size.
#pragma once

#include "coordinator/report/report.hpp"

namespace leafcutter::coordinator {

inline constexpr std::size_t trace_rows = 400;      ///< of one trace; the rest is counted where it is left out
inline constexpr std::size_t traced_findings = 12;  ///< findings with traces
inline constexpr std::size_t listed_leaves = 4000;  ///< of the campaign, failing ones first

/// {findings: [{signature, failing: trace, passing: trace}], leaves: [...], leaves_left_out: n}
Value html_data(const CampaignReport& report, const TraceSource& trace);

/// {columns, rows: [{time, kind, lane, text, from, to, marks..., detail, gap}], total, shown} or {missing: why}
Value trace_data(const scenarios::Scenario& scenario, const std::vector<protocols::Event>& events,
                 const Violation& violation, const std::vector<std::size_t>& divergent);

}  // namespace leafcutter::coordinator
