// The way of a connection whose bytes a planned fault strikes: between the link's proxy and the callee it passes
// through the network fault engine (node/proxy), on a link of the engine's own with the faults of this connection
// alone. All other connections never come here, and a plan without such a fault has no detour at all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "node/proxy/engine.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// The references outlive the detour.
struct DetourContext {
  Recorder& recorder;
  SiteBook& sites;
  Activity& activity;
  /// A fresh IPv4 TCP socket in a network where nobody but the detour dials.
  std::function<base::Expected<base::UniqueFd>()> open_between;
  /// Calls its argument later, on a thread that may wait for the engine.
  std::function<void(std::function<void()>)> post;
};

class Detour {
 public:
  /// One connection, and where it goes.
  struct Passage {
    const scenarios::Link& link;  ///< outlives the detour
    std::string lane;             ///< the link's
    std::uint64_t connection = 0;
    std::vector<SiteBook::Strike> strikes;  ///< all of them the engine's
    /// Connected; or none: the engine dials `endpoints`, in order, with `open_far`.
    base::UniqueFd callee = {};
    std::vector<std::string> endpoints = {};
    proxy::OpenSocket open_far = {};
  };

  /// How a connection's passage ended, once it has.
  struct Ended {
    std::string fault;     ///< the kind of the fault that ended it; empty: none did
    bool refused = false;  ///< the engine reached no callee
    std::string detail;
  };

  /// Errors: unavailable.
  static base::Expected<std::unique_ptr<Detour>> start(DetourContext context);
  ~Detour();

  /// The near end of the detour, to be used in place of the callee's socket. Errors: what a socket or a fault is
  /// refused for.
  base::Expected<base::UniqueFd> lead(Passage passage);

  /// The caller sends no more: if it waited for what a fault keeps from it, it has given up.
  void caller_ended(const std::string& lane, std::uint64_t connection);

  /// Whoever had the near end is done with it; how the passage ended, if it has, which is known before the near end
  /// shows it.
  std::optional<Ended> release(const std::string& lane, std::uint64_t connection);

  /// No event comes after it.
  void stop();

 private:
  explicit Detour(DetourContext context) : context_(std::move(context)) {}

  struct Led {
    const scenarios::Link* link = nullptr;
    std::string lane;
    std::uint64_t connection = 0;
    std::map<std::string, SiteBook::Strike, std::less<>> faults;  ///< by the engine's ids
    std::string awaited;  ///< what the activity calls a caller that waits in vain
    Ended how;
    bool given_up = false, over = false, released = false;
  };

  void heard(const proxy::Event& event);
  void struck(Led& led, const proxy::Event& event);
  void closed(Led& led, const proxy::Event& event);
  void stop_awaiting(Led& led);
  void retire(const std::string& name);
  void forget(const std::string& name);
  static std::string name_of(const std::string& lane, std::uint64_t connection);

  DetourContext context_;
  mutable std::mutex mutex_;
  std::map<std::string, Led, std::less<>> led_;  ///< by the name of the engine's link
  std::deque<std::string> retired_;              ///< over, the oldest first; on the thread of `post`
  std::unique_ptr<proxy::Engine> engine_;        ///< goes first: its hook uses the rest
};

/// Whether some fault of the plan is the engine's.
bool needs_detour(const scenarios::Plan& plan);

}  // namespace leafcutter::node
