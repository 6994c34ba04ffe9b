// Runs a program under the real filter and a real supervisor, without namespaces, and keeps what was recorded.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/observe/recorder.hpp"
#include "node/syscalls/filter_plan.hpp"
#include "scenarios/plan.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::node {
class DurableImage;
}

namespace leafcutter::node::tests {

using ScratchFolder = leafcutter::tests::Folder;

std::vector<std::string> all_families();
std::string program(const std::string& name);   ///< a target program of these tests
std::string contents(const std::string& path);  ///< "<none>" when there is no such file
bool exists(const std::string& path);
/// "write 5 0" lines to verb -> "5 0".
std::map<std::string, std::string> results(const std::string& output);

struct Setting {
  std::vector<std::string> families = {};
  std::string data_folder = {};
  std::vector<scenarios::Fault> faults = {};
  std::vector<std::string> path_globs = {};
  std::map<std::string, std::string> peers = {};
  std::uint32_t event_limit = 64;
  std::string working_folder = {};
  std::shared_ptr<DurableImage> image = {};
  bool can_stop = true;  ///< the service can be stopped and go on
  scenarios::Scope scope = scenarios::Scope::leaf;
  bool old_kernel = false;  ///< the child's kernel does not know WAIT_KILLABLE_RECV

  FilterPlan filter() const;
};

struct Outcome {
  int status = 0;  ///< as of waitpid
  bool timed_out = false;
  int crashes = 0;
  int power_losses = 0;  ///< of the crashes
  int stops = 0, goings_on = 0;
  std::string failure;  ///< what the supervisor said of itself
  std::string output;
  std::vector<Event> events;

  bool exited_well() const;
  std::vector<Event> of_kind(const std::string& kind) const;
  /// Attributes of the only `fault.fired` event; null when there is none or there are several.
  Value fired() const;
  Value undone() const;
  /// Count of a site in the `sites` event; 0 when it was not visited.
  std::uint32_t count(const std::string& family, const std::string& resource) const;
  std::size_t sites() const;
};

/// A child that is stopped before exec, under its filter; its listener is here.
struct Child {
  pid_t pid = -1;
  base::UniqueFd listener;
  base::UniqueFd output;
  std::string error;
};
Child start_child(const std::vector<std::string>& argv, const Setting& setting);
/// Status of the child, or nothing by the deadline (it is killed then).
bool wait_child(pid_t pid, std::chrono::milliseconds limit, int& status);

/// Runs `argv` to its end (or 20 s).
Outcome run(const std::vector<std::string>& argv, const Setting& setting);

scenarios::Fault fault(const std::string& kind, const std::string& family, const std::string& resource,
                       std::uint32_t occurrence = 1, Value params = Value::object());

/// The same as a rule: every call of the family that the aim selects.
scenarios::Fault rule(const std::string& kind, const std::string& family, Value params, scenarios::Aim aim = {});

}  // namespace leafcutter::node::tests
