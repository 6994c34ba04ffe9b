// leafcutter audit: the log of what a node did to its host: verified, shown, countersigned.
#include <fmt/format.h>

#include <unistd.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "commands/host_commands.hpp"
#include "commands/output.hpp"
#include "protocols/audit.hpp"

namespace leafcutter::commands {
namespace {

using protocols::AuditReport;
using Json = nlohmann::json;

struct AuditOptions {
  std::string file, key, anchors, anchor_key, format = "text";
};

/// A key as an option gives it: a file, or the 64 digits.
base::Expected<std::string> key_given(const std::string& option, const std::string& given) {
  auto text = ::access(given.c_str(), F_OK) == 0 ? base::read_file(given) : base::Expected<std::string>(given);
  if (!text) return text.error();
  auto key = base::read_public_key(*text);
  if (!key) return base::Error{base::ErrorCode::bad_input, "\"" + given + "\": " + key.error().message, {option, 0, 0}};
  return key;
}

base::Expected<std::string> given_file(const std::string& path) {
  auto text = base::read_file(path);
  if (!text) return base::Error{base::ErrorCode::bad_input, text.error().message, {}};
  return text;
}

Json report_as_json(const AuditReport& report) {
  Json out = {{"intact", report.intact()},
              {"flaw", protocols::flaw_name(report.flaw)},
              {"records", report.good},
              {"bytes", report.good_bytes},
              {"node", report.node},
              {"key", base::to_hex(report.key)},
              {"head", base::to_hex(report.head)},
              {"anchors", report.anchors},
              {"anchored-records", report.anchored}};
  if (report.flaw != AuditReport::Flaw::none) {
    out["record"] = report.record;
    out["why"] = report.why;
  }
  return out;
}

std::string report_as_text(const AuditReport& report, const AuditOptions& options) {
  std::string out;
  if (report.intact())
    out += fmt::format("{}: {} records verify, signed by {}{}\n", options.file, report.good, base::to_hex(report.key),
                       options.key.empty() ? " (as the log itself says; --key pins it)" : "");
  if (report.flaw != AuditReport::Flaw::none)
    out += fmt::format("{}: record {}: {}: {}\n", options.file, report.record, protocols::flaw_name(report.flaw),
                       report.why);
  if (!report.intact()) return out;
  out += options.anchors.empty() ? "no anchors were given, so records missing at the end would not show\n"
                                 : fmt::format("{} anchors cover {} records\n", report.anchors, report.anchored);
  return out;
}

int verify(const AuditOptions& options) {
  const auto log = given_file(options.file);
  if (!log) return fail(log.error());
  protocols::AuditExpectation expectation;
  if (!options.key.empty()) {
    const auto key = key_given("--key", options.key);
    if (!key) return fail(key.error());
    expectation.key = *key;
  }
  if (!options.anchor_key.empty()) {
    const auto key = key_given("--anchor-key", options.anchor_key);
    if (!key) return fail(key.error());
    expectation.anchor_key = *key;
  }
  if (!options.anchors.empty()) {
    const auto anchors = given_file(options.anchors);
    if (!anchors) return fail(anchors.error());
    expectation.anchors = *anchors;
  }
  const auto report = protocols::verify_audit(*log, expectation);
  const bool printed =
      print(options.format == "json" ? report_as_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                     : report_as_text(report, options));
  if (!printed) return 3;
  return report.intact() ? 0 : 1;
}

int show(const AuditOptions& options) {
  const auto log = given_file(options.file);
  if (!log) return fail(log.error());
  std::string out;
  for (const auto& record : protocols::read_audit(*log)) {
    Json line = {{"sequence", record.sequence}, {"time", record.time}, {"node", record.node}, {"stage", record.stage}};
    for (const auto& [name, value] :
         {std::pair("session", &record.session), std::pair("owner", &record.owner), std::pair("id", &record.id),
          std::pair("action", &record.action), std::pair("resource", &record.resource),
          std::pair("detail", &record.detail), std::pair("profile", &record.profile)})
      if (!value->empty()) line[name] = *value;
    if (record.outcome != protocols::Outcome::none) line["outcome"] = protocols::outcome_name(record.outcome);
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return print(out) ? 0 : 3;
}

/// Only a log that verifies, also under the anchors that there are, is countersigned.
int countersign(const AuditOptions& options) {
  const auto log = given_file(options.file);
  if (!log) return fail(log.error());
  const auto key = base::SigningKey::load(options.key);
  if (!key) return fail({base::ErrorCode::bad_input, key.error().message, {"--key", 0, 0}});
  std::string anchors;
  if (::access(options.anchors.c_str(), F_OK) == 0) {
    const auto read = given_file(options.anchors);
    if (!read) return fail(read.error());
    anchors = *read;
  }
  const auto report = protocols::verify_audit(*log, {{}, anchors, {}});
  if (!report.intact() || report.good == 0)
    return fail({base::ErrorCode::bad_input,
                 fmt::format("it does not verify and is not countersigned: record {}: {}: {}", report.record,
                             protocols::flaw_name(report.flaw), report.why),
                 {options.file, 0, 0}});
  const auto records = protocols::read_audit(*log);
  const protocols::AuditAnchor anchor{report.good - 1, records[report.good - 1].time, report.node, report.first,
                                      report.head};
  if (const auto written = base::write_file_atomically(options.anchors, anchors + protocols::seal_anchor(anchor, *key));
      !written)
    return fail(written.error());
  return print(fmt::format("{}: record {} of {} is anchored\n", options.anchors, anchor.sequence, options.file)) ? 0
                                                                                                                 : 3;
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  auto* audit = app.add_subcommand("audit", "the signed log of what a node did to its host");
  audit->require_subcommand(1);
  auto options = std::make_shared<AuditOptions>();
  auto* verify_command =
      audit->add_subcommand("verify", "check every record, and name the first that is not as it was written");
  verify_command->add_option("FILE", options->file, "the log")->required();
  verify_command->add_option("--key", options->key, "who must have signed it: a key file, or 64 hexadecimal digits");
  verify_command->add_option("--anchor", options->anchors,
                             "anchors that a coordinator has signed: records that are missing at the end show");
  verify_command->add_option("--anchor-key", options->anchor_key, "who must have signed those");
  verify_command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  verify_command->footer(
      "Exit codes: 0 it verifies (a torn tail, as a crash leaves it, is said and does not count), 1 it does not, 2 bad "
      "input.");
  verify_command->callback([options, &context] { context.exit_code = verify(*options); });
  auto* show_command = audit->add_subcommand("show", "print the records, a line of JSON each (unverified)");
  show_command->add_option("FILE", options->file, "the log")->required();
  show_command->callback([options, &context] { context.exit_code = show(*options); });
  auto* anchor_command = audit->add_subcommand("anchor", "countersign how far a log has grown");
  anchor_command->add_option("FILE", options->file, "the log")->required();
  anchor_command->add_option("--key", options->key, "a private key (Ed25519, PEM) that is not the node's")->required();
  anchor_command->add_option("--to", options->anchors, "the file of anchors that another one is added to")->required();
  anchor_command->callback([options, &context] { context.exit_code = countersign(*options); });
}

}  // namespace leafcutter::commands
