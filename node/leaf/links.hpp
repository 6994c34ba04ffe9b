// All links of a leaf: their proxies, and what of the network fault engine its plan makes necessary.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "node/leaf/context.hpp"
#include "node/leaf/outlet.hpp"
#include "node/links/datagram_proxy.hpp"
#include "node/links/detour.hpp"
#include "node/links/dials.hpp"
#include "node/links/partitions.hpp"
#include "node/links/proxy.hpp"

namespace leafcutter::node {

class Links {
 public:
  /// `outlet`: of scenarios that let something out.
  Links(LeafContext& context, Recorder::Clock clock, base::UniqueFd outlet)
      : context_(context), clock_(std::move(clock)), outlet_(std::move(outlet)) {}
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Every link listens, in the order of the scenario. Errors: what cannot be opened.
  base::Status open();

  /// Begins a partition; from any thread but the event loop's. In force when it returns.
  void part(const SiteBook::Strike& strike, const Value& when) { partitions_->begin(strike, when); }

  /// Links and connections whose bytes are held back for a time and will still arrive. From any thread.
  std::vector<std::string> holding() { return engine_.holding(); }

  /// What the engine has seen up to now is in the trace when it returns, and nothing comes after it.
  void finish() { engine_.stop(); }

 private:
  void lead_dials(const scenarios::Link& link, const std::vector<base::UniqueFd>& listeners);
  base::Status open_way_out(const scenarios::WayOut& way);
  base::Status open_connections(const scenarios::Link& link, std::vector<base::UniqueFd> listeners);
  base::Status open_datagrams(const scenarios::Link& link, std::vector<base::UniqueFd> sockets);

  /// Rules of UDP links whose event was seen are in force, soon after it.
  void follow_events();

  LeafContext& context_;
  Recorder::Clock clock_;
  Outlet outlet_;
  EngineHost engine_;
  std::unique_ptr<Detour> detour_;
  std::unique_ptr<Dials> dials_;
  std::vector<std::unique_ptr<LinkProxy>> connections_;
  std::vector<std::unique_ptr<LinkProxy>> outward_;
  std::vector<std::unique_ptr<DatagramProxy>> datagrams_;
  std::unique_ptr<Partitions> partitions_;
  std::uint64_t wake_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< of what was posted: it may come when this is gone
};

}  // namespace leafcutter::node
