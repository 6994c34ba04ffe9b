// Partitions between sets of services: every link across is cut at one moment, for open connections, for new ones and
// for datagrams, and heals at another.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "node/links/datagram_proxy.hpp"
#include "node/links/detour.hpp"
#include "node/links/proxy.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// The references outlive the partitions.
struct PartitionContext {
  boost::asio::io_context& io;  ///< everything happens on its thread
  SiteBook& sites;
  Activity& activity;
  const std::vector<scenarios::Link>& links;
  Detour& detour;
  std::vector<LinkProxy*> connections;
  std::vector<DatagramProxy*> datagrams;
  /// A partition could not be begun or healed: nothing that follows means anything.
  std::function<void(const std::string& why)> failed;
};

class Partitions {
 public:
  explicit Partitions(PartitionContext context);
  ~Partitions();

  /// In force when it returns. From any thread but `io`'s.
  void begin(const SiteBook::Strike& strike, const Value& when);
  /// The same on `io`'s thread.
  void begin_here(const SiteBook::Strike& strike, const Value& when);

 private:
  struct Shared;
  class Active;
  std::shared_ptr<Shared> shared_;
};

/// The ids of the links that the plan's partitions can come to lie across, whose connections must be where they can be
/// cut.
std::vector<std::string> links_to_cover(const scenarios::Plan& plan, const std::vector<scenarios::Link>& links);

}  // namespace leafcutter::node
