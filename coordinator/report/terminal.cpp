#include <algorithm>

#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/layout.hpp"
#include "coordinator/report/report.hpp"
#include "coordinator/report/tally.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Verdict;

constexpr std::size_t width = 100, label_columns = 10, most_findings = 10;

/// SGR sequences, or nothing.
struct Paint {
  bool colour;
  std::string operator()(const char* code, const std::string& text) const {
    return colour ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  }
};
constexpr const char *bold = "1", *dim = "2", *red = "31", *green = "32", *yellow = "33", *magenta = "35",
                     *red_bold = "1;31";

const char* colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail: return red;
    case Verdict::infra: return magenta;
    case Verdict::inconclusive: return yellow;
    case Verdict::pass: break;
  }
  return green;
}

std::string explanation_line(const Paint& paint, const std::string& line) {
  if (line.starts_with("FAIL")) return paint(red_bold, line);
  if (line.starts_with("! ")) return paint(red, line);
  if (line.starts_with("> ")) return paint(bold, line);
  if (!line.empty() && line.front() != ' ') return paint(bold, line);
  return line;
}

void findings(std::string& out, const CampaignReport& report, const Paint& paint) {
  const auto& all = report.findings;
  for (std::size_t i = 0; i < std::min(all.size(), most_findings); ++i) {
    const auto& finding = all[i];
    const auto heading = "Finding " + std::to_string(i + 1) + " of " + std::to_string(all.size()) + "  [" +
                         finding.signature + "]  seen in " + std::to_string(finding.seen) +
                         (finding.seen == 1 ? " leaf, " : " leaves, ") + rate_text(finding);
    out += paint(dim, "── ") + paint(bold, fit(heading, width - 3)) + "\n";
    for (const auto& line : finding.explanation) out += explanation_line(paint, line) + "\n";
    // An explanation ends in its replay line; a finding that has none still says how.
    if (finding.explanation.empty())
      out += paint(red_bold, fit("FAIL  " + one_line_text(finding.property, 200), width)) + "\n      " +
             fit(one_line_text(finding.message, 400), width - 6) + "\n  leafcutter replay " + finding.leaf.text() +
             "\n";
    out += "\n";
  }
  if (all.size() > most_findings)
    out += "… " + std::to_string(all.size() - most_findings) + " more findings; the JSON and HTML reports have all\n\n";
}

void labelled(std::string& out, const Paint& paint, const std::string& label, const std::string& text,
              std::size_t lines = 3) {
  bool first = true;
  for (const auto& line : wrap(text, width - label_columns, lines)) {
    out += (first ? paint(bold, pad(label, label_columns)) : std::string(label_columns, ' ')) + line + "\n";
    first = false;
  }
}

void verdicts(std::string& out, const CampaignReport& report, const Paint& paint) {
  const auto counts = tally(report);
  labelled(out, paint, "Leaves",
           std::to_string(counts.total) + " explored in " + std::to_string(report.epochs.size()) +
               (report.epochs.size() == 1 ? " epoch, " : " epochs, ") + std::to_string(report.executions) +
               " executions in all, " + elapsed_text(report.elapsed_ms));
  for (const auto verdict : verdicts_worst_first) {
    const auto count = counts.by_verdict.at(verdict);
    if (count == 0 && verdict != Verdict::pass && verdict != Verdict::fail) continue;
    std::string reasons;
    for (const auto& [reason, of_it] : reasons_of(counts, verdict))
      reasons += (reasons.empty() ? "" : ", ") + std::string(scenarios::name(reason)) + " " + std::to_string(of_it);
    auto number = std::to_string(count);
    number.insert(0, number.size() < 7 ? 7 - number.size() : 0, ' ');
    const auto name = pad(std::string(scenarios::name(verdict)), 13);
    out += std::string(label_columns, ' ') + (count > 0 ? paint(colour_of(verdict), name) : name) + number +
           (reasons.empty() ? "" : "   " + fit(reasons, width - label_columns - 23)) + "\n";
  }
}

/// Why leaves were not decided, each reason with what can be done about it.
void advice(std::string& out, const CampaignReport& report, const Paint& paint) {
  const auto counts = tally(report);
  for (const auto& text : scenarios::reasons()) {
    const auto found = counts.by_reason.find(text.reason);
    const auto verdict = scenarios::verdict_of(text.reason);
    if (found == counts.by_reason.end() || (verdict != Verdict::infra && verdict != Verdict::inconclusive)) continue;
    const auto example = std::find_if(report.results.begin(), report.results.end(),
                                      [&](const Result& r) { return r.reason == text.reason; });
    labelled(out, paint, "Undecided",
             std::string(scenarios::name(text.reason)) + ": " + one_line_text(example->detail, 300) + " (leaf " +
                 example->address + "). " + text.what_to_do);
  }
}

}  // namespace

std::string terminal_report(const CampaignReport& report, bool colour) {
  const Paint paint{colour};
  std::string out;
  findings(out, report, paint);
  verdicts(out, report, paint);
  advice(out, report, paint);
  labelled(out, paint, "Coverage", coverage_line(report.coverage), 8);
  if (const auto outside = scenarios::outside_text(report.scenario); !outside.empty())
    labelled(out, paint, "Outside", outside, 8);
  labelled(out, paint, "Digest", report.digest);
  labelled(out, paint, "Campaign",
           report.campaign.name + ", scenario " + report.scenario.name +
               (report.campaign.variant.empty() ? "" : ", variant " + report.campaign.variant) + ", seed " +
               std::to_string(report.campaign.seed));
  if (!report.findings.empty())
    labelled(out, paint, "Replay", "leafcutter replay " + report.findings.front().leaf.text());
  const auto code = exit_code(report);
  const auto* shade = code == scenarios::exit_codes::held      ? green
                      : code == scenarios::exit_codes::finding ? red_bold
                                                               : yellow;
  labelled(out, paint, "Outcome", outcome_text(report));
  if (colour) {  // the last line carries the colour of the outcome
    const auto at = out.rfind(outcome_text(report));
    if (at != std::string::npos) out.replace(at, outcome_text(report).size(), paint(shade, outcome_text(report)));
  }
  return out;
}

}  // namespace leafcutter::coordinator
