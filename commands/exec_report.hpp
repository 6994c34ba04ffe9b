// What became of the rules of `leafcutter exec`, and which sites the program visited: collected from the events of the
// run, said on standard error, written as a trace.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::commands {

/// Events as NDJSON, a line each, written as they come.
class TraceFile {
 public:
  static base::Expected<TraceFile> create(const std::string& path);
  void write(const protocols::Event& event);
  /// Errors: io (something could not be written).
  base::Status close();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  bool failed_ = false;
};

class ExecReport {
 public:
  explicit ExecReport(const scenarios::Plan& plan);

  void see(const protocols::Event& event);

  std::size_t unfired() const;
  /// One block a rule: how often it fired and how the first time showed, or that it never did, and why.
  std::string rules_text() const;
  /// A table of the sites that were visited.
  std::string sites_text() const;
  /// Calls that could not be looked at, so that no rule struck them; empty: none.
  std::string unresolved_text() const;

 private:
  struct Outcome {
    std::uint64_t times = 0;
    protocols::Value evidence;
    std::string unable;                                 ///< never fired: what kept the first call that it was meant for
    std::optional<scenarios::CompiledPattern> awaited;  ///< the event of its `after`, until it is seen
  };
  void note_unable(const protocols::Value& call);

  const scenarios::Plan& plan_;
  std::vector<Outcome> rules_;
  protocols::Value sites_ = protocols::Value::array();
  std::map<std::string, std::string> unresolved_;  ///< call -> why, of the first
};

}  // namespace leafcutter::commands
