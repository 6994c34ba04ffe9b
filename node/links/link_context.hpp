// What all connections of one link share.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "node/links/proxy.hpp"

namespace leafcutter::node {

class Connection;

struct LinkContext {
  ProxyContext proxy;
  scenarios::Link link;
  std::string id;  ///< the link's lane
  LinkProxy::OpenSocket open_socket;
  std::vector<boost::asio::ip::tcp::endpoint> upstream;
  std::function<void(Connection&)> ended;  ///< the connection is over and may be forgotten

  /// The fault took effect, as what happened before on the link says; whatever `struck` (the caller or the callee) does
  /// from now on happened after it.
  void fired(std::size_t fault, Value evidence, const std::string& struck) {
    proxy.sites.fired(fault, std::move(evidence));
    proxy.recorder.deliver(struck, proxy.recorder.now(id));
  }

  /// What the caller (up) or the callee (down) sends now, the other will have seen.
  void carry_up() { proxy.recorder.deliver(link.to, proxy.recorder.now(link.from)); }
  void carry_down() { proxy.recorder.deliver(link.from, proxy.recorder.now(link.to)); }
};

}  // namespace leafcutter::node
