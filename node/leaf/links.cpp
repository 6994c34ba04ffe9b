#include "node/leaf/links.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "node/leaf/client.hpp"
#include "node/links/engine_faults.hpp"
#include "node/syscalls/address.hpp"
#include "node/syscalls/dial.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::node {

base::Status Links::open() {
  const auto& links = context_.scenario.links;
  if (needs_detour(context_.job.plan)) {
    detour_ = std::make_unique<Detour>(
        DetourContext{engine_, context_.recorder, context_.sites, context_.activity,
                      [this] { return context_.network.open_between(); },
                      [this](std::function<void()> task) { boost::asio::post(context_.io, std::move(task)); },
                      [this](const std::string& why) { context_.fail("runner-failed", why); }});
    for (const auto& lane : links_to_cover(context_.job.plan, links)) detour_->cover(lane);
  }
  for (const auto& link : links) {
    auto sockets = context_.network.listen(context_.scenario, link);
    if (!sockets) return base::Error{sockets.error().code, "link " + link.id() + ": " + sockets.error().message, {}};
    auto opened =
        link.is_datagrams() ? open_datagrams(link, std::move(*sockets)) : open_connections(link, std::move(*sockets));
    if (!opened) return base::Error{opened.error().code, "link " + link.id() + ": " + opened.error().message, {}};
  }
  for (const auto& way : context_.scenario.ways_out)
    if (auto opened = open_way_out(way); !opened)
      return base::Error{opened.error().code, "way out " + way.lane() + ": " + opened.error().message, {}};
  follow_events();
  if (!detour_) return base::ok();
  PartitionContext parted{context_.io, context_.sites, context_.activity, links, *detour_, {}, {}, {}};
  for (const auto& link : connections_) parted.connections.push_back(link.get());
  for (const auto& link : datagrams_) parted.datagrams.push_back(link.get());
  parted.failed = [this](const std::string& why) { context_.fail("runner-failed", why); };
  partitions_ = std::make_unique<Partitions>(std::move(parted));
  return base::ok();
}

void Links::lead_dials(const scenarios::Link& link, const std::vector<base::UniqueFd>& listeners) {
  if (!dials_) dials_ = std::make_unique<Dials>(context_.sites, context_.recorder, context_.activity);
  context_.dials = dials_.get();
  for (const auto& listener : listeners) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) continue;
    if (const auto address = address_text({reinterpret_cast<const char*>(&name), size})) dials_->lead(link, *address);
  }
}

Links::~Links() {
  if (wake_ != 0) context_.sites.forget_wake(wake_);
}

void Links::follow_events() {
  const auto& faults = context_.sites.plan().faults;
  const bool any = std::any_of(faults.begin(), faults.end(), [](const scenarios::Fault& fault) {
    return fault.site.operation == session_operation && fault.aim && !fault.aim->after.empty();
  });
  if (!any) return;
  wake_ = context_.sites.wake_at_release([this, alive = std::weak_ptr(alive_)] {
    boost::asio::post(context_.io, [this, alive] {
      if (!alive.lock()) return;
      for (const auto& link : datagrams_)
        if (const auto status = link->catch_up(); !status)
          context_.fail("runner-failed", "strike sessions of " + link->lane() + ": " + status.error().text());
    });
  });
}

base::Status Links::open_connections(const scenarios::Link& link, std::vector<base::UniqueFd> listeners) {
  const bool decide = Dials::decide(context_.job.plan, link) && calls_can_be_watched();
  if (decide) lead_dials(link, listeners);
  ProxyContext proxy{context_.io,
                     context_.recorder,
                     context_.sites,
                     context_.activity,
                     detour_.get(),
                     decide ? dials_.get() : nullptr,
                     {},
                     clock_};
  proxy.part = [this](const SiteBook::Strike& strike, const Value& when) { partitions_->begin_here(strike, when); };
  connections_.push_back(std::make_unique<LinkProxy>(
      std::move(proxy), link, std::move(listeners),
      [this, to = link.to](int family) { return context_.network.open_socket(to, family); },
      local_endpoints(context_.network.address(link.to), link.number)));
  connections_.back()->start();
  return base::ok();
}

/// The proxy of a link, but that the callee's network is the host's.
base::Status Links::open_way_out(const scenarios::WayOut& way) {
  const auto inside = scenarios::outside_addresses(context_.scenario);
  auto listeners = context_.network.listen(way, way.is_name() ? inside.at(way.to) : way.to);
  if (!listeners) return listeners.error();
  auto addresses = outlet_.look_up(way.at_host.empty() ? way.to : way.at_host);
  if (!addresses) return addresses.error();
  Endpoints upstream;
  for (const auto& address : *addresses) {
    boost::system::error_code error;
    const auto made = boost::asio::ip::make_address(address, error);
    if (!error) upstream.emplace_back(made, way.at_host.empty() ? way.port : way.at_port);
  }
  ProxyContext proxy{context_.io, context_.recorder, context_.sites, context_.activity};
  proxy.clock = clock_;
  const auto lane = way.lane();
  const auto begin = lane.find(" -> ") + 4, colon = lane.rfind(':');
  const scenarios::Link link{
      way.from, lane.substr(begin, colon - begin), lane.substr(colon + 1), scenarios::Protocol::tcp, way.port, false};
  outward_.push_back(std::make_unique<LinkProxy>(
      std::move(proxy), link, std::move(*listeners), [this](int family) { return outlet_.open_socket(family); },
      std::move(upstream)));
  outward_.back()->start();
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
