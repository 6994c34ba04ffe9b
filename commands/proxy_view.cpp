#include "commands/proxy_view.hpp"

#include <fmt/format.h>

#include "commands/output.hpp"

namespace leafcutter::commands {
namespace {

using node::runs::EventGates;
using node::runs::RecordLine;
using node::runs::Runner;
using node::runs::Time;

const std::string& phase_name(const Runner& runner) { return runner.run().phases[runner.point().phase].name; }

class RecordView final : public ProxyView {
 public:
  explicit RecordView(Time start) : start_(start) {}

  bool started(const Runner& runner, const std::string& file) override {
    return print(node::runs::run_started_record(runner.run(), {file, runner.seed(), runner.endpoints()}));
  }
  bool phase(const Runner& runner, Time now) override {
    return print(node::runs::phase_started_record(runner.run(), runner.point(), now, start_, runner.started()));
  }
  bool begun(const Runner& runner, const EventGates::Opened& fault, Time now) override {
    return print(fault_begun_record(fault.proxy, fault.fault, fault.after, phase_name(runner), now - start_));
  }
  bool progress(Runner& runner, Time now) override {
    RecordLine line("progress");
    line.add_ms("at_ms", now - start_)
        .add("phase", phase_name(runner))
        .add_value("links", node::runs::totals_value(runner.totals()))
        .add("dropped_records", runner.dropped_records());
    return print(std::move(line).text());
  }
  bool reloaded(const Runner& runner, Time now, std::size_t changed) override {
    return print(node::runs::reloaded_record(runner.run(), runner.endpoints(), now - start_, changed));
  }
  bool reload_failed(const std::vector<base::Error>& errors, Time now) override {
    return print(node::runs::reload_failed_record(errors, now - start_));
  }
  bool ended(Runner& runner, Time now, ProxyEnd end) override {
    return print(run_completed_record(runner, now, start_, end));
  }

 private:
  Time start_;
};

/// A line when something changes.
class TextView final : public ProxyView {
 public:
  explicit TextView(Time start) : start_(start) {}

  bool started(const Runner& runner, const std::string& file) override {
    std::string text =
        fmt::format("{}: seed {}\n", runner.run().name.empty() ? file : runner.run().name, runner.seed());
    for (const auto& one : runner.endpoints())
      text += fmt::format("  {}  {} -> {}\n", one.proxy, one.address, one.upstream);
    return print(text);
  }
  bool phase(const Runner& runner, Time now) override {
    return print(fmt::format("{:>8.1f}s  phase \"{}\" ({} of {})\n", seconds(now), phase_name(runner),
                             runner.point().phase + 1, runner.run().phases.size()));
  }
  bool begun(const Runner&, const EventGates::Opened& fault, Time now) override {
    return print(fmt::format("{:>8.1f}s  fault \"{}\" of {} is in force, after \"{}\" on {}\n", seconds(now),
                             fault.fault, fault.proxy, node::runs::record_type(fault.after.kind), fault.after.proxy));
  }
  bool progress(Runner&, Time) override { return true; }
  bool reloaded(const Runner&, Time now, std::size_t changed) override {
    return print(fmt::format("{:>8.1f}s  reloaded; proxies opened or closed: {}\n", seconds(now), changed));
  }
  bool reload_failed(const std::vector<base::Error>& errors, Time) override {
    for (const auto& error : errors) print_error(error);
    return true;
  }
  bool ended(Runner& runner, Time now, ProxyEnd end) override {
    std::string text = fmt::format("{:>8.1f}s  {}\n", seconds(now), name_of(end));
    for (const auto& [name, link] : runner.totals())
      text += fmt::format("  {}  {} connections, {} struck, {} strikes, {} bytes to the upstream, {} to clients\n",
                          name, link.accepted, link.struck_connections, link.strikes, link.bytes_to_upstream,
                          link.bytes_to_client);
    return print(text);
  }

 private:
  double seconds(Time now) const { return std::chrono::duration<double>(now - start_).count(); }
  Time start_;
};

}  // namespace

std::unique_ptr<ProxyView> make_record_view(Time start) { return std::make_unique<RecordView>(start); }
std::unique_ptr<ProxyView> make_text_view(Time start) { return std::make_unique<TextView>(start); }

std::string_view name_of(ProxyEnd end) {
  switch (end) {
    case ProxyEnd::completed: return "completed";
    case ProxyEnd::interrupted: return "interrupted";
    case ProxyEnd::terminated: return "terminated";
    case ProxyEnd::failed: return "failed";
  }
  return "?";
}

std::string run_completed_record(Runner& runner, Time now, Time start, ProxyEnd end) {
  RecordLine line("run-completed");
  line.add_ms("at_ms", now - start)
      .add("status", name_of(end))
      .add_value("links", node::runs::totals_value(runner.totals()))
      .add("dropped_records", runner.dropped_records());
  return std::move(line).text();
}

}  // namespace leafcutter::commands
