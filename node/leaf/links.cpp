#include "node/leaf/links.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "node/leaf/client.hpp"

namespace leafcutter::node {

base::Status Links::open() {
  const auto& links = context_.scenario.links;
  if (needs_detour(context_.job.plan)) {
    detour_ = std::make_unique<Detour>(
        DetourContext{engine_, context_.recorder, context_.sites, context_.activity,
                      [this] { return context_.network.open_between(); },
                      [this](std::function<void()> task) { boost::asio::post(context_.io, std::move(task)); }});
    for (const auto& lane : links_to_cover(context_.job.plan, links)) detour_->cover(lane);
  }
  for (const auto& link : links) {
    auto sockets = context_.network.listen(context_.scenario, link);
    if (!sockets) return base::Error{sockets.error().code, "link " + link.id() + ": " + sockets.error().message, {}};
    auto opened =
        link.is_datagrams() ? open_datagrams(link, std::move(*sockets)) : open_connections(link, std::move(*sockets));
    if (!opened) return base::Error{opened.error().code, "link " + link.id() + ": " + opened.error().message, {}};
  }
  if (!detour_) return base::ok();
  PartitionContext parted{context_.io, context_.sites, context_.activity, links, *detour_, {}, {}, {}};
  for (const auto& link : connections_) parted.connections.push_back(link.get());
  for (const auto& link : datagrams_) parted.datagrams.push_back(link.get());
  parted.failed = [this](const std::string& why) { context_.fail("runner-failed", why); };
  partitions_ = std::make_unique<Partitions>(std::move(parted));
  return base::ok();
}

base::Status Links::open_connections(const scenarios::Link& link, std::vector<base::UniqueFd> listeners) {
  ProxyContext proxy{context_.io, context_.recorder, context_.sites, context_.activity, detour_.get(), {}, clock_};
  proxy.part = [this](const SiteBook::Strike& strike, const Value& when) { partitions_->begin_here(strike, when); };
  connections_.push_back(std::make_unique<LinkProxy>(
      std::move(proxy), link, std::move(listeners),
      [this, to = link.to](int family) { return context_.network.open_socket(to, family); },
      local_endpoints(context_.network.address(link.to), link.number)));
  connections_.back()->start();
  return base::ok();
}

base::Status Links::open_datagrams(const scenarios::Link& link, std::vector<base::UniqueFd> sockets) {
  auto proxy = DatagramProxy::start(
      {engine_, context_.recorder, context_.sites, context_.activity}, link, std::move(sockets),
      [this, to = link.to, port = link.number] { return context_.network.dial_datagrams(to, port); });
  if (!proxy) return proxy.error();
  datagrams_.push_back(std::move(*proxy));
  return base::ok();
}

}  // namespace leafcutter::node
