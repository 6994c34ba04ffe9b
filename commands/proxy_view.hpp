// How a run of proxies is shown while it lasts: NDJSON for programs, lines or a dashboard for people.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "node/runs/runner.hpp"

namespace leafcutter::commands {

/// How it ended.
enum class ProxyEnd {
  completed,
  interrupted,
  terminated,
  failed,  ///< nobody could be told what happens, or a phase could not begin
};

class ProxyView {
 public:
  virtual ~ProxyView() = default;
  /// Every function: false when it could not be written, and nobody looks any more.
  virtual bool started(const node::runs::Runner& runner, const std::string& file) = 0;
  virtual bool phase(const node::runs::Runner& runner, node::runs::Time now) = 0;
  /// A fault that waited for something is in force.
  virtual bool begun(const node::runs::Runner& runner, const node::runs::EventGates::Opened& fault,
                     node::runs::Time now) = 0;
  virtual bool progress(node::runs::Runner& runner, node::runs::Time now) = 0;
  /// `changed`: how many proxies had to be opened or closed.
  virtual bool reloaded(const node::runs::Runner& runner, node::runs::Time now, std::size_t changed) = 0;
  virtual bool reload_failed(const std::vector<base::Error>& errors, node::runs::Time now) = 0;
  virtual bool ended(node::runs::Runner& runner, node::runs::Time now, ProxyEnd end) = 0;
  virtual std::chrono::milliseconds interval() const { return std::chrono::seconds(1); }
};

/// `start`: what times count from.
std::unique_ptr<ProxyView> make_record_view(node::runs::Time start);
std::unique_ptr<ProxyView> make_text_view(node::runs::Time start);
/// Redraws the terminal. `colour`: with escape sequences for colours.
std::unique_ptr<ProxyView> make_dashboard(node::runs::Time start, bool colour);

std::string_view name_of(ProxyEnd end);
/// "run-completed": how it ended, the totals, what was dropped.
std::string run_completed_record(node::runs::Runner& runner, node::runs::Time now, node::runs::Time start,
                                 ProxyEnd end);

}  // namespace leafcutter::commands
