#include "commands/proxy_dashboard.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "commands/output.hpp"
#include "commands/proxy_view.hpp"

namespace leafcutter::commands {
namespace {

namespace proxy = node::proxy;
using node::runs::Runner;
using node::runs::Time;

constexpr const char* bold = "\x1b[1m";
constexpr const char* red = "\x1b[31m";
constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

/// 1:05, 2:03:04.
std::string clock_text(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds >= 3600) return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string rate_text(double rate) {
  if (rate < 1000) return fmt::format("{:.0f} B/s", rate);
  if (rate < 1e6) return fmt::format("{:.1f} kB/s", rate / 1e3);
  return fmt::format("{:.1f} MB/s", rate / 1e6);
}

/// Cut between characters of UTF-8; control characters would move the cursor.
std::string fitted(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (!continues && ++columns > width) break;
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out;
}

class Screen {
 public:
  Screen(std::size_t width, std::size_t height, bool colour) : width_(width), height_(height), colour_(colour) {}

  void line(const std::string& text, const char* style = nullptr) {
    if (lines_ == height_) return;
    ++lines_;
    const bool styled = colour_ && style != nullptr;
    text_ += (styled ? style : "") + fitted(text, width_) + (styled ? plain : "") + "\n";
  }
  std::string text() && { return std::move(text_); }

 private:
  std::size_t width_, height_, lines_ = 0;
  bool colour_;
  std::string text_;
};

std::string fault_text(const DashboardFault& fault) {
  auto text = fmt::format("    {:<22} {:<12} struck {:<8}", fault.id, fault.flow, fault.strikes);
  if (fault.delay.count() > 0 && fault.strikes > 0)
    text += fmt::format(" {:.1f} ms on average",
                        static_cast<double>(fault.delay.count()) / 1e6 / static_cast<double>(fault.strikes));
  if (fault.passed_over > 0) text += fmt::format("  passed over {}", fault.passed_over);
  return text + (fault.active ? "" : "  (earlier)");
}

void add_link(Screen& screen, const DashboardLink& link) {
  screen.line("");
  screen.line(fmt::format("{}  {}://{} -> {}", link.name, link.udp ? "udp" : "tcp", link.listen, link.upstream), bold);
  screen.line(fmt::format("    {} open, {} so far, {} struck{}   up {}   down {}", link.active, link.accepted,
                          link.struck_connections,
                          link.connect_failed > 0 ? fmt::format(", {} without upstream", link.connect_failed) : "",
                          rate_text(link.to_upstream_rate), rate_text(link.to_client_rate)));
  bool any = false;
  for (const auto& fault : link.faults) {
    any = any || fault.active;
    if (fault.active || fault.strikes > 0) screen.line(fault_text(fault), fault.active ? red : dim);
  }
  if (!any) screen.line("    no faults", dim);
}

}  // namespace

std::string dashboard_text(const Dashboard& dashboard, std::size_t width, std::size_t height, bool colour) {
  Screen screen(width, height, colour);
  screen.line(
      fmt::format("leafcutter proxy  {}  seed {}  {}", dashboard.name, dashboard.seed, clock_text(dashboard.elapsed)),
      bold);
  screen.line(fmt::format("phase {} of {}: {}  ({})", dashboard.phase_number, dashboard.phases, dashboard.phase,
                          dashboard.phase_left ? clock_text(*dashboard.phase_left) + " left" : "until stopped"));
  if (dashboard.dropped_records > 0)
    screen.line(fmt::format("{} records were dropped", dashboard.dropped_records), red);
  if (!dashboard.notice.empty()) screen.line(dashboard.notice, red);
  for (const auto& link : dashboard.links) add_link(screen, link);
  return std::move(screen).text();
}

namespace {

std::string flow_name(proxy::Flow flow) {
  return flow == proxy::Flow::both ? "both" : flow == proxy::Flow::to_client ? "to-client" : "to-upstream";
}

std::vector<DashboardFault> faults_of(Runner& runner, const proxy::LinkStats& stats) {
  std::vector<DashboardFault> faults;
  const auto set = runner.engine().faults(stats.name);
  const auto counted = [&](const std::string& id, const std::string& flow, bool active) {
    const auto found = stats.faults.find(id);
    const auto counts = found == stats.faults.end() ? proxy::FaultStats{} : found->second;
    faults.push_back({id, flow, counts.strikes, counts.passed_over, counts.delay, active});
  };
  if (set)
    for (const auto& fault : set->faults) counted(fault.id, flow_name(fault.selector.flow), true);
  for (const auto& [id, counts] : stats.faults)
    if (!set || std::none_of(set->faults.begin(), set->faults.end(), [&](const auto& one) { return one.id == id; }))
      counted(id, "", false);
  return faults;
}

class DashboardView final : public ProxyView {
 public:
  DashboardView(Time start, bool colour) : start_(start), colour_(colour), last_(make_text_view(start)) {}
  ~DashboardView() override { leave(); }

  bool started(const Runner& runner, const std::string& file) override {
    name_ = runner.run().name.empty() ? file : runner.run().name;
    shown_ = print("\x1b[?1049h\x1b[?25l");  // another screen, and no cursor
    return shown_;
  }
  bool phase(const Runner&, Time) override { return true; }  // drawn at once by progress()
  bool begun(const Runner&, const node::runs::EventGates::Opened&, Time) override { return true; }  // drawn as active
  bool progress(Runner& runner, Time now) override {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1;
    const auto text =
        dashboard_text(state(runner, now), known ? size.ws_col : 80, known ? size.ws_row - 1U : 24, colour_);
    std::string screen = "\x1b[H";
    for (const char c : text) c == '\n' ? screen += "\x1b[K\r\n" : screen += c;
    return print(screen + "\x1b[J");
  }
  bool reloaded(const Runner& runner, Time, std::size_t changed) override {
    if (!runner.run().name.empty()) name_ = runner.run().name;
    notice_ = fmt::format("loaded again; proxies opened or closed: {}", changed);
    return true;
  }
  bool reload_failed(const std::vector<base::Error>& errors, Time) override {
    notice_ = "the edit was refused: " + (errors.empty() ? "" : errors.front().text());
    return true;
  }
  bool ended(Runner& runner, Time now, ProxyEnd end) override {
    leave();
    return last_->ended(runner, now, end);
  }
  std::chrono::milliseconds interval() const override { return std::chrono::milliseconds(500); }

 private:
  void leave() {
    if (std::exchange(shown_, false)) print("\x1b[?25h\x1b[?1049l");
  }

  Dashboard state(Runner& runner, Time now) {
    const auto stats = runner.engine().stats();
    Dashboard board;
    board.name = name_;
    board.notice = notice_;
    board.seed = runner.seed();
    board.dropped_records = stats.dropped_events;
    board.phase = runner.run().phases[runner.point().phase].name;
    board.phase_number = runner.point().phase + 1;
    board.phases = runner.run().phases.size();
    board.elapsed = now - start_;
    if (const auto& until = runner.point().until) board.phase_left = *until - (now - runner.started());
    const double seconds = drawn_ ? std::chrono::duration<double>(now - *drawn_).count() : 0;
    for (const auto& endpoint : runner.endpoints()) {
      const auto found = stats.links.find(endpoint.proxy);
      if (found == stats.links.end()) continue;
      const auto& link = found->second;
      auto& before = before_[link.name];
      const auto rate = [&](std::uint64_t is, std::uint64_t was) {
        return seconds > 0 && is >= was ? static_cast<double>(is - was) / seconds : 0.0;
      };
      board.links.push_back({link.name, link.listen, link.upstream, link.transport == proxy::Transport::udp,
                             link.active, link.accepted, link.struck_connections, link.connect_failed,
                             rate(link.bytes_to_upstream, before.first), rate(link.bytes_to_client, before.second),
                             faults_of(runner, link)});
      before = {link.bytes_to_upstream, link.bytes_to_client};
    }
    drawn_ = now;
    return board;
  }

  Time start_;
  bool colour_, shown_ = false;
  std::unique_ptr<ProxyView> last_;
  std::string name_, notice_;
  std::optional<Time> drawn_;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> before_;
};

}  // namespace

std::unique_ptr<ProxyView> make_dashboard(Time start, bool colour) {
  return std::make_unique<DashboardView>(start, colour);
}

}  // namespace leafcutter::commands
