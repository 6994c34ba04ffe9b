// Answers the notified system calls of one service: names the object a call acts on, counts the site, and carries out
// what the plan says. One thread a service; when it dies, the leaf dies.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"

namespace leafcutter::node {

class DurableImage;

struct SupervisorContext {
  std::string service;                       ///< lane
  std::string data_folder;                   ///< as the service sees it; paths below become "data:<relative>"
  std::map<std::string, std::string> peers;  ///< "10.77.0.2:7002" -> "broker:http", for socket families
  std::vector<std::string> families;         ///< those that are watched
  std::vector<std::string> path_globs;       ///< further paths that are sites, beside the data folder; fnmatch(3), "*"
                                        ///< crosses "/". The first that matches decides, and one after a "!" says no
  std::uint32_t event_limit = 64;  ///< `syscall` events per site; the rest is only counted
  Recorder& recorder;
  SiteBook& sites;
  Activity& activity;
  /// Kills the whole service with SIGKILL and returns when no process of it is left; with `power_lost`, what `image`
  /// says is gone when the service comes up again. Called from the supervisor's own thread: it must not destroy the
  /// supervisor.
  std::function<void(bool power_lost)> crash;
  /// Stops every process of the service (SIGSTOP), for a while if need be; returns how many, 0 when it is not running.
  /// Lets them go on (SIGCONT) when it was called as often as `stop` did not return 0. From the supervisor's own
  /// thread.
  std::function<unsigned()> stop = {};
  std::function<void()> go_on = {};
  /// Asked before a TCP socket dials `address` ("10.77.0.2:7002"), when nothing else has ended the call; true: the call
  /// fails with ECONNREFUSED. From the supervisor's own thread. Empty: nobody is asked.
  std::function<bool(const std::string& address)> refuse_dial = {};
  /// Knows what is durable of the data folder; null when no fault of the plan needs that. Told of every sync by the
  /// supervisor's thread, and outlives the supervisor.
  std::shared_ptr<DurableImage> image = {};
  /// The supervisor failed (not the service): the leaf is INFRA. Called at most once, from the supervisor's own thread.
  std::function<void(std::string why)> failed;
};

class Supervisor {
 public:
  Supervisor(base::UniqueFd listener, SupervisorContext context);
  /// Answers what is pending, lets delayed calls run, and joins the thread.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The class of a path: the data folder becomes "data:", and what varies between runs (pids, counters, random suffixes)
/// becomes "#": "data:temp-4711.aof" -> "data:temp-#.aof". Empty when the path is no site (system files, other
/// folders).
std::string resource_class(const std::string& path, const std::string& data_folder,
                           const std::vector<std::string>& path_globs);

}  // namespace leafcutter::node
