// The way of a connection whose bytes a planned fault strikes: between the link's proxy and the callee it passes
// through the network fault engine (node/proxy), on a link of the engine's own with the faults of this connection
// alone. All other connections never come here, unless a partition may come between their ends.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/links/cut.hpp"
#include "node/links/engine_host.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// The references outlive the detour.
struct DetourContext {
  EngineHost& engine;
  Recorder& recorder;
  SiteBook& sites;
  Activity& activity;
  /// A fresh IPv4 TCP socket in a network where nobody but the detour dials.
  std::function<base::Expected<base::UniqueFd>()> open_between;
  /// Calls its argument later, on the one thread that calls this class.
  std::function<void(std::function<void()>)> post;
  /// Something that a rule asks for could not be done: nothing that follows means anything.
  std::function<void(const std::string& why)> failed = {};
};

/// To be used on one thread.
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

  /// Links of rules that may strike open connections are covered.
  explicit Detour(DetourContext context);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  /// The near end of the detour, to be used in place of the callee's socket. Errors: what a socket or a fault is
  /// refused for.
  base::Expected<base::UniqueFd> lead(Passage passage);

  /// The caller sends no more: if it waited for what a fault keeps from it, it has given up.
  void caller_ended(const std::string& lane, std::uint64_t connection);

  /// Whoever had the near end is done with it; how the passage ended, if it has, which is known before the near end
  /// shows it.
  std::optional<Ended> release(const std::string& lane, std::uint64_t connection);

  /// Rules whose event was seen meanwhile strike the connections that are open, the oldest first. To be called before
  /// a new connection is counted; otherwise it comes by itself, soon.
  void catch_up();

  // --- partitions ---

  /// From now on every connection of this link passes here.
  void cover(const std::string& lane) { covered_.insert(lane); }
  bool covers(const std::string& lane) const { return covered_.contains(lane); }

  /// Stalls open connections, and later ones from their beginning. How many were open; in force when it returns.
  base::Expected<std::size_t> begin_cut(const Cut& cut);
  base::Status end_cut(const std::string& id);

 private:
  struct Led {
    const scenarios::Link* link = nullptr;
    std::string lane;
    std::uint64_t connection = 0;
    std::map<std::size_t, std::vector<proxy::Fault>> own;         ///< by their places in the plan
    std::map<std::string, SiteBook::Strike, std::less<>> faults;  ///< by the engine's ids
    std::string awaited;  ///< what the activity calls a caller that waits in vain
    Ended how;
    bool given_up = false, over = false, released = false, forgotten = false;
  };

  base::Status strike(Led& led, const SiteBook::Strike& strike, bool open);
  base::Status strike_open(Led& led, std::size_t rule, bool& struck);
  std::vector<std::pair<std::string, Led*>> open_connections(const std::string& lane);
  void heard(const proxy::Event& event);
  void struck(Led& led, const proxy::Event& event);
  void closed(Led& led, const proxy::Event& event);
  void stop_awaiting(Led& led);
  void retire(const std::string& name);
  void forget(const std::string& name);
  proxy::FaultSet set_of(const Led& led) const;
  static std::string name_of(const std::string& lane, std::uint64_t connection);

  DetourContext context_;
  std::set<std::string> covered_;
  std::vector<std::size_t> awaiting_event_, in_force_;  ///< rules of open connections: before their event, and after it
  std::uint64_t wake_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< of what was posted: it may come when this is gone
  mutable std::mutex mutex_;                     ///< of `led_` and `cuts_`: events come on the engine's threads
  std::map<std::string, Led, std::less<>> led_;  ///< by the name of the engine's link
  std::map<std::string, Cut> cuts_;              ///< in force, by id
  std::deque<std::string> retired_;              ///< over, the oldest first
};

/// Whether some fault of the plan strikes the bytes of connections, or comes between them.
bool needs_detour(const scenarios::Plan& plan);

}  // namespace leafcutter::node
