// What a link's faults do to a connection before there is one: where the calls of a caller are looked at, each of its
// dials visits the link's site before it is made, and a refused one is never made. Whoever cannot be looked at has its
// connections visited when they come, and the proxy can refuse those only after the caller's kernel has opened them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// Thread-safe once every way is known; the references outlive it.
class Dials {
 public:
  Dials(SiteBook& sites, Recorder& recorder, Activity& activity)
      : sites_(sites), recorder_(recorder), activity_(activity) {}

  /// Whether some fault of the plan is decided when this link is dialled.
  static bool decide(const scenarios::Plan& plan, const scenarios::Link& link);

  /// A dial of the link's caller to `address` ("10.77.0.2:7002", "[::1]:7002") comes to the link. The first link that
  /// has an address keeps it. Before anybody runs; the link outlives this.
  void lead(const scenarios::Link& link, const std::string& address);

  /// The calls of this caller must be looked at.
  bool watches(const std::string& caller) const { return callers_.contains(caller); }

  /// The caller is about to dial the address. True: it must be told that nobody listens, which is in the trace already.
  bool refuses(const std::string& caller, const std::string& address);

  /// A connection of the link came: the visit of its site that was made when it was dialled. With several of one
  /// caller's under way the first one dialled counts as the first to come, and one that was given up before it came (in
  /// a partition) as the next one.
  SiteBook::Visit arrived(const std::string& lane);

 private:
  static constexpr std::size_t most_under_way = 4096;

  struct Way {
    const scenarios::Link* link = nullptr;
    std::string lane;
  };
  void refused(const Way& way, std::uint32_t connection, std::size_t fault);

  SiteBook& sites_;
  Recorder& recorder_;
  Activity& activity_;
  std::set<std::string> callers_;
  std::map<std::pair<std::string, std::string>, Way> ways_;  ///< by caller and address
  std::mutex mutex_;
  std::map<std::string, std::deque<SiteBook::Visit>> under_way_;  ///< by lane
};

/// The site of a link's connections.
inline Site connect_site(const std::string& lane) { return {lane, "connect", "tcp"}; }

}  // namespace leafcutter::node
