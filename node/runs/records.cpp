#include "node/runs/records.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace leafcutter::node::runs {
namespace {

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

std::string json_string(std::string_view text) {
  if (is_plain(text)) return '"' + std::string(text) + '"';
  return protocols::Value(text).dump(-1, ' ', false, protocols::Value::error_handler_t::replace);
}

/// 12.3456: no more digits than are needed.
std::string milliseconds_text(std::chrono::nanoseconds time) {
  const auto count = time.count();
  const bool negative = count < 0;
  const auto size = negative ? -count : count;
  auto text = fmt::format("{}{}.{:06}", negative ? "-" : "", size / 1'000'000, size % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string_view direction_name(proxy::Direction direction) {
  return direction == proxy::Direction::to_upstream ? "to-upstream" : "to-client";
}

bool is_decision(proxy::EventKind kind) {
  return kind == proxy::EventKind::struck || kind == proxy::EventKind::passed_over;
}

void add_decision(RecordLine& line, const proxy::Event& event) {
  line.add("direction", direction_name(event.direction)).add("fault", event.fault).add("effect", event.effect);
  line.add("activation", event.activation);
  if (event.kind == proxy::EventKind::passed_over) return;
  if (event.operation != 0) line.add("operation", event.operation);
  line.add("offset", event.offset).add("bytes", event.bytes);
  if (event.delay.count() != 0) line.add_ms("delay_ms", event.delay);
}

protocols::Value endpoints_value(const std::vector<Endpoint>& list) {
  auto endpoints = protocols::Value::array();
  for (const auto& one : list) {
    const std::string scheme = one.transport == proxy::Transport::tcp ? "tcp://" : "udp://";
    endpoints.push_back({{"proxy", one.proxy}, {"listen", scheme + one.address}, {"upstream", one.upstream}});
  }
  return endpoints;
}

std::string wall_clock() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), (now - seconds).count());
}

}  // namespace

std::string_view record_type(proxy::EventKind kind) {
  return kind == proxy::EventKind::closed ? "connection-closed" : proxy::name_of(kind);
}

RecordLine::RecordLine(std::string_view type) : line_("{\"type\":") { line_ += json_string(type); }

void RecordLine::key_text(std::string_view key) {
  line_ += ",\"";
  line_ += key;
  line_ += "\":";
}

RecordLine& RecordLine::add(std::string_view key, std::string_view text) {
  key_text(key);
  line_ += json_string(text);
  return *this;
}

RecordLine& RecordLine::add(std::string_view key, std::uint64_t number) {
  key_text(key);
  line_ += std::to_string(number);
  return *this;
}

RecordLine& RecordLine::add_value(std::string_view key, const protocols::Value& value) {
  key_text(key);
  line_ += value.dump(-1, ' ', false, protocols::Value::error_handler_t::replace);
  return *this;
}

RecordLine& RecordLine::add_ms(std::string_view key, std::chrono::nanoseconds time) {
  key_text(key);
  line_ += milliseconds_text(time);
  return *this;
}

RecordLine& RecordLine::add_null(std::string_view key) {
  key_text(key);
  line_ += "null";
  return *this;
}

std::string RecordLine::text() && { return std::move(line_ += "}\n"); }

std::string event_record(const proxy::Event& event, Time start) {
  RecordLine line(record_type(event.kind));
  line.add_ms("at_ms", event.at - start).add("link", event.link).add("phase", event.phase);
  if (event.connection != 0) line.add("connection", event.connection);
  if (is_decision(event.kind)) {
    add_decision(line, event);
  } else if (event.kind == proxy::EventKind::closed) {
    line.add("bytes_to_upstream", event.bytes).add("bytes_to_client", event.bytes_back);
  } else if (event.bytes != 0) {
    line.add("bytes", event.bytes);
  }
  if (event.cause != proxy::Cause::none) line.add("cause", proxy::name_of(event.cause));
  if (!is_decision(event.kind) && !event.fault.empty()) line.add("fault", event.fault);
  if (!event.detail.empty()) line.add("detail", event.detail);
  return std::move(line).text();
}

std::string run_started_record(const Run& run, const RunHeader& header) {
  RecordLine line("run-started");
  line.add("journal_version", static_cast<std::uint64_t>(journal_version))
      .add("started_at", wall_clock())
      .add("run_name", run.name)
      .add("file", header.file)
      .add("config_sha256", run.digest)
      .add("seed", header.seed)
      .add_value("endpoints", endpoints_value(header.endpoints));
  return std::move(line).text();
}

std::string phase_started_record(const Run& run, const PhasePoint& point, Time now, Time start, Time began) {
  RecordLine line("phase-started");
  line.add_ms("at_ms", now - start)
      .add("phase", run.phases[point.phase].name)
      .add("number", static_cast<std::uint64_t>(point.phase + 1))
      .add("of", static_cast<std::uint64_t>(run.phases.size()));
  if (point.until)
    line.add_ms("until_ms", began + *point.until - start);
  else
    line.add_null("until_ms");
  return std::move(line).text();
}

std::string fault_begun_record(const std::string& proxy, const std::string& fault, const Awaited& after,
                               std::string_view phase, std::chrono::nanoseconds at) {
  RecordLine line("fault-begun");
  line.add_ms("at_ms", at).add("link", proxy).add("phase", phase).add("fault", fault);
  protocols::Value seen = {{"record", record_type(after.kind)}, {"proxy", after.proxy}, {"count", after.count}};
  if (!after.fault.empty()) seen["fault"] = after.fault;
  if (after.connection) seen["connection"] = *after.connection;
  if (after.cause) seen["cause"] = name_of(*after.cause);
  line.add_value("after", seen);
  return std::move(line).text();
}

std::string reloaded_record(const Run& run, const std::vector<Endpoint>& endpoints, std::chrono::nanoseconds at,
                            std::size_t changed) {
  RecordLine line("config-reloaded");
  line.add_ms("at_ms", at)
      .add("run_name", run.name)
      .add("config_sha256", run.digest)
      .add("proxies_changed", static_cast<std::uint64_t>(changed))
      .add_value("endpoints", endpoints_value(endpoints));
  return std::move(line).text();
}

std::string reload_failed_record(const std::vector<base::Error>& errors, std::chrono::nanoseconds at) {
  auto messages = protocols::Value::array();
  for (const auto& error : errors) messages.push_back(error.text());
  RecordLine line("config-reload-failed");
  line.add_ms("at_ms", at).add_value("errors", messages);
  return std::move(line).text();
}

void add_to(proxy::LinkStats& sum, const proxy::LinkStats& more) {
  sum.accepted += more.accepted;
  sum.active += more.active;
  sum.connected += more.connected;
  sum.connect_failed += more.connect_failed;
  sum.closed += more.closed;
  sum.struck_connections += more.struck_connections;
  sum.strikes += more.strikes;
  sum.discarded += more.discarded;
  sum.accept_failures += more.accept_failures;
  sum.bytes_to_upstream += more.bytes_to_upstream;
  sum.bytes_to_client += more.bytes_to_client;
  sum.datagrams_to_upstream += more.datagrams_to_upstream;
  sum.datagrams_to_client += more.datagrams_to_client;
  for (const auto& [id, fault] : more.faults) {
    auto& into = sum.faults[id];
    into.effect = fault.effect;
    into.strikes += fault.strikes;
    into.bytes += fault.bytes;
    into.passed_over += fault.passed_over;
    into.delay += fault.delay;
  }
}

protocols::Value totals_value(const Totals& totals) {
  auto links = protocols::Value::object();
  for (const auto& [name, link] : totals) {
    auto faults = protocols::Value::object();
    for (const auto& [id, fault] : link.faults)
      faults[id] = {{"effect", fault.effect},
                    {"strikes", fault.strikes},
                    {"passed_over", fault.passed_over},
                    {"bytes", fault.bytes},
                    {"delay_ms", static_cast<double>(fault.delay.count()) / 1e6}};
    links[name] = {{"accepted", link.accepted},
                   {"active", link.active},
                   {"connected", link.connected},
                   {"connect_failed", link.connect_failed},
                   {"closed", link.closed},
                   {"struck_connections", link.struck_connections},
                   {"strikes", link.strikes},
                   {"discarded", link.discarded},
                   {"bytes_to_upstream", link.bytes_to_upstream},
                   {"bytes_to_client", link.bytes_to_client},
                   {"faults", std::move(faults)}};
  }
  return links;
}

}  // namespace leafcutter::node::runs
