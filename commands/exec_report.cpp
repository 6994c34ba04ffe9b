#include "commands/exec_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "scenarios/event_kinds.hpp"
#include "scenarios/event_pattern.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::commands {
namespace {

namespace events = scenarios::events;
using protocols::Value;

std::string json_line(const Value& value) { return value.dump(-1, ' ', false, Value::error_handler_t::replace); }

std::string plain_text(const Value& value) { return value.is_string() ? value.get<std::string>() : json_line(value); }

/// "fsync /srv/a.wal (EIO, pid 4711)": the call, what it acted on, and the rest.
std::string evidence_text(const Value& evidence) {
  if (!evidence.is_object()) return json_line(evidence);
  std::string out, rest;
  for (const auto* key : {"call", "path", "peer", "address"})
    if (const auto found = evidence.find(key); found != evidence.end() && !plain_text(*found).empty())
      out += (out.empty() ? "" : " ") + plain_text(*found);
  const bool named = evidence.contains("errno_name");
  if (named) rest = plain_text(evidence["errno_name"]);
  for (const auto& [key, value] : evidence.items())
    if (key != "call" && key != "path" && key != "peer" && key != "address" && key != "errno_name" &&
        (key != "errno" || !named))
      rest += (rest.empty() ? "" : ", ") + key + " " + plain_text(value);
  if (!rest.empty()) out += (out.empty() ? "" : " ") + ("(" + rest + ")");
  return out;
}

std::string times_text(std::uint64_t times) { return times == 1 ? "once" : fmt::format("{} times", times); }

}  // namespace

base::Expected<TraceFile> TraceFile::create(const std::string& path) {
  TraceFile trace;
  trace.path_ = path;
  trace.file_.reset(std::fopen(path.c_str(), "we"));
  if (trace.file_ == nullptr) {
    auto error = base::system_error("cannot write the trace " + path, errno);
    error.code = base::ErrorCode::bad_input;
    return error;
  }
  std::setvbuf(trace.file_.get(), nullptr, _IOLBF, BUFSIZ);  // whoever watches the run sees it as it happens
  return trace;
}

void TraceFile::write(const protocols::Event& event) {
  const auto line = json_line({{"lane", event.lane},
                               {"seq", event.seq},
                               {"clock", event.clock},
                               {"at_ns", event.at.count()},
                               {"kind", event.kind},
                               {"attrs", event.attrs}}) +
                    "\n";
  failed_ = failed_ || std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size();
}

base::Status TraceFile::close() {
  failed_ = std::fflush(file_.get()) != 0 || failed_;
  file_.reset();
  if (failed_)
    return base::Error{base::ErrorCode::io, "the trace " + path_ + " could not be written; it is not complete", {}};
  return base::ok();
}

ExecReport::ExecReport(const scenarios::Plan& plan) : plan_(plan), rules_(plan.faults.size()) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto& aim = plan.faults[i].aim;
    if (!aim || aim->after.empty()) continue;
    const auto pattern = scenarios::parse_event_pattern(aim->after);
    if (!pattern) continue;
    if (auto compiled = scenarios::CompiledPattern::compile(*pattern)) rules_[i].awaited = std::move(*compiled);
  }
}

/// "short not possible: it carries 5 bytes; torn was planned here, too, and not carried out"
void ExecReport::note_unable(const Value& call) {
  static constexpr std::string_view between = "; ";
  auto left = call.value("detail", "");
  while (!left.empty()) {
    const auto end = std::min(left.find(between), left.size());
    const auto words = left.substr(0, end);
    left.erase(0, std::min(end + between.size(), left.size()));
    for (std::size_t i = 0; i < rules_.size(); ++i)
      if (rules_[i].unable.empty() && words.starts_with(plan_.faults[i].kind + " ") &&
          call.value("family", "") == plan_.faults[i].site.operation)
        rules_[i].unable = call.value("call", "?") + " " + call.value("path", "") + ": " + words;
  }
}

void ExecReport::see(const protocols::Event& event) {
  for (auto& rule : rules_)
    if (rule.awaited)
      if (const auto seen = rule.awaited->matches(event); seen && *seen) rule.awaited.reset();
  if (event.kind == events::syscall) note_unable(event.attrs);
  if (event.kind == events::sites) sites_ = event.attrs.value("sites", Value::array());
  if (event.kind == events::unresolved)
    unresolved_.emplace(event.attrs.value("call", "?"), event.attrs.value("why", ""));
  const auto index = event.attrs.value("fault", rules_.size());
  if (index >= rules_.size()) return;
  auto& rule = rules_[index];
  if (event.kind == events::fault_fired && rule.times == 0) {
    rule.times = 1;
    rule.evidence = event.attrs.value("evidence", Value::object());
  }
  if (event.kind == events::fault_undone) rule.times = std::max(rule.times, event.attrs.value("strikes", rule.times));
}

std::size_t ExecReport::unfired() const {
  return static_cast<std::size_t>(
      std::count_if(rules_.begin(), rules_.end(), [](const Outcome& rule) { return rule.times == 0; }));
}

std::string ExecReport::rules_text() const {
  std::string out;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto rule = scenarios::rule_text(plan_.faults[i]);
    if (rules_[i].times == 0)
      out += "leafcutter: NEVER FIRED: " + rule + "\n" +
             (rules_[i].awaited ? "leafcutter:   its event was never seen: " + plan_.faults[i].aim->after + "\n" : "") +
             (rules_[i].unable.empty() ? "" : "leafcutter:   a call that it was meant for: " + rules_[i].unable + "\n");
    else if (rules_[i].evidence.contains("decided"))
      out += "leafcutter: in force in the kernel, not counted: " + rule + "\n";
    else
      out += "leafcutter: fired " + times_text(rules_[i].times) + ": " + rule +
             "\nleafcutter:   first: " + evidence_text(rules_[i].evidence) + "\n";
  }
  return out;
}

std::string ExecReport::sites_text() const {
  if (sites_.empty()) return "leafcutter: no site was visited\n";
  std::size_t width = 6;
  for (const auto& site : sites_) width = std::max(width, plain_text(site[1]).size());
  auto out = fmt::format("leafcutter: {:<{}}  {:>8}  {}\n", "family", width, "visits", "site");
  for (const auto& site : sites_)
    out += fmt::format("leafcutter: {:<{}}  {:>8}  {}\n", plain_text(site[1]), width, json_line(site[3]),
                       plain_text(site[2]));
  return out;
}

std::string ExecReport::unresolved_text() const {
  std::string out;
  for (const auto& [call, why] : unresolved_)
    out += "leafcutter: calls of " + call + " could not be looked at, so no rule struck them: " + why + "\n";
  return out;
}

}  // namespace leafcutter::commands
