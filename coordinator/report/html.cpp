// One file, no network: everything that is to be read is there without a script; the script adds lanes, filters and
// copying.
#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/story.hpp"
#include "coordinator/ledger/result_codec.hpp"
#include "coordinator/report/html_data.hpp"
#include "coordinator/report/html_parts.hpp"
#include "coordinator/report/markup.hpp"
#include "coordinator/report/report.hpp"
#include "coordinator/report/tally.hpp"
#include "scenarios/rule.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Verdict;

std::string tag(const char* name, const std::string& classes, const std::string& content) {
  return "<" + std::string(name) + (classes.empty() ? "" : " class=\"" + classes + "\"") + ">" + content + "</" + name +
         ">";
}

const char* class_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail: return "fail";
    case Verdict::infra: return "infra";
    case Verdict::inconclusive: return "open";
    case Verdict::pass: break;
  }
  return "pass";
}

std::string command(const std::string& text) {
  return "<span class=\"command\"><code>" + escape(text) +
         "</code><button type=\"button\" class=\"copy\" data-copy=\"" + escape(text) +
         "\" aria-label=\"Copy the command\">Copy</button></span>";
}

std::string fact(const std::string& label, const std::string& value) {
  return "<div class=\"fact\"><dt>" + escape(label) + "</dt><dd>" + value + "</dd></div>";
}

std::string plural(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string header(const CampaignReport& report) {
  const auto code = exit_code(report);
  const auto* shade = code == scenarios::exit_codes::held      ? "pass"
                      : code == scenarios::exit_codes::finding ? "fail"
                                                               : "open";
  const auto* word = code == scenarios::exit_codes::held      ? "HELD"
                     : code == scenarios::exit_codes::finding ? "FAILED"
                     : report.interrupted                     ? "INTERRUPTED"
                                                              : "UNDECIDED";
  std::string html =
      "<header class=\"hero " + std::string(shade) + "\"><div class=\"wrap\"><p class=\"brand\">Leafcutter</p><h1>" +
      escape(report.scenario.name) +
      (report.campaign.variant.empty() ? "" : " <small>variant " + escape(report.campaign.variant) + "</small>") +
      "</h1><p class=\"verdict\"><b>" + word + "</b> " + escape(outcome_text(report)) + "</p>";
  if (!report.scenario.about.empty()) html += tag("p", "about", escape(report.scenario.about));
  if (const auto outside = scenarios::outside_text(report.scenario); !outside.empty())
    html += tag("p", "about", escape(outside));
  html += "<dl class=\"facts\">" + fact("Leaves", std::to_string(report.results.size())) +
          fact("Executions", std::to_string(report.executions)) +
          fact("Findings", std::to_string(report.findings.size())) +
          fact("Epochs", std::to_string(report.epochs.size())) + fact("Took", escape(elapsed_text(report.elapsed_ms))) +
          fact("Seed", std::to_string(report.campaign.seed)) +
          fact("Campaign", tag("code", "", escape(report.campaign.name))) + "</dl></div></header>\n";
  return html;
}

std::string explanation(const Finding& finding) {
  std::string html = "<pre class=\"explanation\">";
  for (const auto& line : finding.explanation) {
    const char* shade = line.starts_with("! ")                 ? "struck"
                        : line.starts_with("> ")               ? "proof"
                        : !line.empty() && line.front() != ' ' ? "head"
                                                               : "";
    html += (*shade ? tag("span", shade, escape(line)) : escape(line)) + "\n";
  }
  return html + "</pre>";
}

/// In the order in which the faults struck, as the explanation counts them, when the trace is still there.
std::string plan(const Finding& finding, const TraceSource& source) {
  if (finding.plan.faults.empty()) return tag("p", "plan-none", "It fails without any fault.");
  std::vector<protocols::Event> events;
  if (finding.plan.faults.size() > 1)
    if (auto trace = source(finding.failing_execution)) events = std::move(*trace);
  std::string items;
  for (const auto* each : in_order_of_strikes(finding.plan, events)) {
    const auto& fault = *each;
    std::string params;
    for (const auto& [name, value] : fault.params.items())
      params +=
          (params.empty() ? "" : ", ") + name + " " + (value.is_string() ? value.get<std::string>() : dump(value));
    items += "<li><b class=\"kind\">" + escape(fault.kind) + (params.empty() ? "" : " <i>" + escape(params) + "</i>") +
             "</b><span class=\"site\"><span>" + escape(fault.site.lane) + "</span><span>" +
             escape(fault.site.operation) + "</span><span>" + escape(fault.site.resource) +
             "</span></span><span class=\"nth\">" +
             (fault.aim ? escape(scenarios::rule_text(fault)) : "occurrence " + std::to_string(fault.occurrence)) +
             "</span></li>";
  }
  return tag("ol", "plan", items);
}

std::string finding(const Finding& found, std::size_t number, std::size_t of, bool traced, const TraceSource& trace) {
  std::string badges = tag("span", found.confirmed ? "badge fail" : "badge open", escape(rate_text(found)));
  if (found.control_passed) badges += tag("span", "badge pass", "holds without faults");
  if (found.one_minimal) badges += tag("span", "badge", "1-minimal");
  badges += tag("span", "badge", "seen in " + plural(found.seen, "leaf", "leaves"));
  std::string html =
      "<article class=\"card finding\" id=\"f-" + escape(found.signature) + "\"><p class=\"eyebrow\">Finding " +
      std::to_string(number) + " of " + std::to_string(of) + " <code>" + escape(found.signature) + "</code></p><h3>" +
      escape(found.property) + "</h3>" + tag("p", "message", escape(one_line_text(found.message, 600))) +
      tag("p", "badges", badges) + "<h4>" + (found.one_minimal ? "Minimal plan" : "Smallest plan so far") + "</h4>" +
      plan(found, trace) + "<h4>Replay</h4><p>" + command("leafcutter replay " + found.leaf.text()) + "</p>";
  if (traced) html += "<section class=\"lanes\" data-finding=\"" + escape(found.signature) + "\"></section>";
  if (!found.explanation.empty())
    html += "<details" + std::string(traced ? "" : " open") + "><summary>Explanation in one screen</summary>" +
            explanation(found) + "</details>";
  if (found.exemplars.size() > 1) {
    std::string others;
    for (const auto& exemplar : found.exemplars)
      if (exemplar != found.leaf.text()) others += " " + command("leafcutter replay " + exemplar);
    html += tag("p", "exemplars", "Also in" + others);
  }
  return html + "</article>\n";
}

std::string findings(const CampaignReport& report, const TraceSource& trace) {
  if (report.findings.empty()) return {};
  std::string html = "<section><h2>" + plural(report.findings.size(), "finding", "findings") + "</h2>\n";
  for (std::size_t i = 0; i < report.findings.size(); ++i)
    html += finding(report.findings[i], i + 1, report.findings.size(), i < traced_findings, trace);
  return html + "</section>\n";
}

std::string verdicts(const CampaignReport& report) {
  const auto counts = tally(report);
  std::string bar, rows;
  for (const auto verdict : verdicts_worst_first) {
    const auto count = counts.by_verdict.at(verdict);
    if (count > 0)
      bar += "<span class=\"" + std::string(class_of(verdict)) + "\" style=\"flex-grow:" + std::to_string(count) +
             "\" title=\"" + std::string(scenarios::name(verdict)) + " " + std::to_string(count) + "\"></span>";
    for (const auto& text : scenarios::reasons()) {
      const auto found = counts.by_reason.find(text.reason);
      if (found == counts.by_reason.end() || scenarios::verdict_of(text.reason) != verdict) continue;
      rows += "<tr><td>" +
              tag("span", std::string("badge ") + class_of(verdict), std::string(scenarios::name(verdict))) +
              "</td><td><code>" + escape(text.name) + "</code></td><td class=\"number\">" +
              std::to_string(found->second) + "</td><td>" + escape(text.about) +
              (text.what_to_do.empty() ? "" : " <i>" + escape(text.what_to_do) + "</i>") + "</td></tr>";
    }
  }
  if (rows.empty()) rows = "<tr><td colspan=\"4\">No leaf was run.</td></tr>";
  return "<section class=\"card\"><h2>Verdicts</h2><div class=\"bar\" role=\"presentation\">" + bar +
         "</div><table><thead><tr><th>Verdict</th><th>Reason</th><th "
         "class=\"number\">Leaves</th><th>Meaning</th></tr></thead><tbody>" +
         rows + "</tbody></table></section>\n";
}

std::string meter(const char* label, std::uint64_t known, std::uint64_t run, std::uint64_t fired) {
  if (known == 0) return {};
  const auto part = [&](std::uint64_t value) { return std::to_string(value * 100 / known); };
  return "<div class=\"meter\"><span>" + std::string(label) +
         "</span><span class=\"track\"><i class=\"run\" style=\"width:" + part(run) +
         "%\"></i><i class=\"fired\" style=\"width:" + part(fired) + "%\"></i></span><span>" + std::to_string(run) +
         " of " + std::to_string(known) + " run, " + std::to_string(fired) + " fired</span></div>";
}

std::string coverage_section(const CampaignReport& report) {
  const auto& c = report.coverage;
  std::string html =
      "<section class=\"card\"><h2>Coverage</h2>" + meter("Single faults", c.singles, c.singles_run, c.singles_fired) +
      meter("Ordered pairs", c.pairs, c.pairs_run, c.pairs_fired) + tag("p", "line", escape(coverage_line(c)));
  if (!c.skipped.empty()) {
    std::string rows;
    for (const auto& [reason, count] : c.skipped)
      rows += "<tr><td><code>" + escape(reason) + "</code></td><td class=\"number\">" + std::to_string(count) +
              "</td></tr>";
    html += "<h4>Pairs that were not run</h4><table class=\"narrow\"><tbody>" + rows + "</tbody></table>";
  }
  if (!c.not_covered.empty()) {
    std::string items;
    for (const auto& sentence : c.not_covered) items += tag("li", "", escape(sentence));
    html += "<h4>What this campaign says nothing about</h4>" + tag("ul", "", items);
  }
  return html + "</section>\n";
}

std::string leaves(const CampaignReport& report) {
  return "<section class=\"card\" id=\"leaves\"><h2>Leaves</h2><p class=\"hint\">" +
         std::to_string(report.results.size()) +
         " explored. The list needs its script; the JSON report has the same facts.</p><div "
         "class=\"list\"></div></section>\n<footer>Result digest <code>" +
         escape(report.digest) + "</code><br>Scenario <code>" + escape(report.campaign.scenario_file) +
         "</code>, identity <code>" + escape(report.campaign.identity.substr(0, 16)) + "</code></footer>\n";
}

}  // namespace

std::string html_report(const CampaignReport& report, const TraceSource& trace) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'; "
         "img-src data:\"><title>" +
         escape(report.scenario.name) + ": " + escape(outcome_text(report)) + "</title>\n<style>" +
         std::string(html_style()) + "</style></head>\n<body>\n" + header(report) + "<main class=\"wrap\">\n" +
         findings(report, trace) + verdicts(report) + coverage_section(report) + leaves(report) +
         "</main>\n<script type=\"application/json\" id=\"data\">" + script_json(html_data(report, trace)) +
         "</script>\n<script>" + std::string(html_script()) + "</script>\n</body></html>\n";
}

}  // namespace leafcutter::coordinator
