// What the parts of one leaf share. Everything in it outlives them.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

#include "node/leaf/job.hpp"
#include "node/leaf/network.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

class Dials;

struct LeafContext {
  const LeafJob& job;
  const scenarios::Scenario& scenario;
  boost::asio::io_context& io;  ///< run by the main thread alone
  const Network& network;
  Recorder& recorder;
  SiteBook& sites;
  Activity& activity;
  Value variables;  ///< what `${...}` can name outside of a service
  std::atomic<bool>& fault_fired;
  Dials* dials = nullptr;          ///< what is decided when links are dialled; null: the plan has no such fault
  int image_folder = -1;           ///< where durable images are kept; -1: the plan needs none
  std::uint64_t log_lines = 1000;  ///< that may still be recorded (main thread)
  std::uint64_t log_lines_dropped = 0;
  /// Ends the leaf as INFRA: a reason's name and what was found. From any thread; the first one counts.
  std::function<void(const std::string& reason, const std::string& detail)> fail;
  /// What is on its way on links and has not arrived, because faults hold it back for a time.
  std::function<std::vector<std::string>()> on_its_way;
  /// Begins a partition of the plan's, which says in its evidence when; in force when it returns. Not on `io`'s thread.
  std::function<void(const SiteBook::Strike& strike, const Value& when)> part;
};

/// For every service `${shop.host}`, `${shop.data}`, `${shop.port}` (when it has one), `${shop.port.NAME}`; and
/// `${scenario}`, the scenario's folder. What the loader lets a user write.
Value service_variables(const scenarios::Scenario& scenario);

/// The same, and the service's own `${data}`, `${port}`, `${port.NAME}`.
Value own_variables(const scenarios::Scenario& scenario, const scenarios::Service& service);

/// "/leaf/shop".
std::string data_folder(const std::string& service);

/// Expands every element. Errors: bad_input.
base::Expected<std::vector<std::string>> expand_all(const std::vector<std::string>& texts, const Value& variables);

}  // namespace leafcutter::node
