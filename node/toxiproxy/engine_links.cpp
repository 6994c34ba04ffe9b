#include "node/toxiproxy/engine_links.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

constexpr std::size_t most_names = 4096;

/// As Toxiproxy's clients know it.
base::Error listening_error(const std::string& listen, base::Error error) {
  // The link and the address are the caller's own words.
  const auto said = "listen on " + listen + ": ";
  if (const auto at = error.message.find(said); at != std::string::npos) error.message.erase(0, at + said.size());
  error.message = "listen tcp " + listen + ": " +
                  (error.code == base::ErrorCode::conflict ? "bind: address already in use" : error.message);
  return error;
}

base::Expected<std::string> nothing_or(const base::Status& status) {
  if (!status) return status.error();
  return std::string();
}

}  // namespace

void EngineLinks::remember(const proxy::HostPort& name, const proxy::Resolver::Addresses& addresses) {
  const std::lock_guard lock(mutex_);
  if (names_.size() >= most_names) names_.clear();
  names_.insert_or_assign(name.host, addresses);
}

/// Asks nobody, and so never waits.
base::Expected<std::string> EngineLinks::address_of(const std::string& listen) const {
  const auto parsed = proxy::parse_host_port(listen, "listen");
  if (!parsed || !proxy::literal_address(*parsed).empty()) return listen;  // the engine says what is wrong with it
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(parsed->host);
  if (found == names_.end())
    return base::Error{base::ErrorCode::unavailable,
                       "cannot resolve \"" + parsed->host + "\": no name server has answered in time",
                       {}};
  if (!found->second) return found->second.error();
  auto address = found->second->front();
  address.set_port(parsed->port);
  return address.text();
}

base::Expected<std::string> EngineLinks::add(const AddLink& link, const std::string& given) {
  const auto address = address_of(given);
  if (!address) return listening_error(given, address.error());
  const auto& listen = *address;
  proxy::LinkConfig config;
  config.name = link.name;
  config.listen = listen;
  config.upstream = link.upstream;
  config.enabled = link.enabled;
  config.faults = link.faults;
  auto added = engine_.add_link(std::move(config));
  if (!added) return listening_error(listen, added.error());
  return added;
}

std::uint64_t EngineLinks::accepted(const std::string& proxy) const {
  const auto stats = engine_.stats(proxy);
  return stats ? stats->accepted : 0;
}

base::Expected<std::string> EngineLinks::perform(const Operation& operation) {
  if (const auto* link = std::get_if<AddLink>(&operation)) {
    auto added = add(*link, link->listen);
    // Every address of a host without IPv6.
    if (!added && added.error().code != base::ErrorCode::conflict && link->listen.rfind("[::]:", 0) == 0)
      if (auto on_v4 = add(*link, "0.0.0.0:" + link->listen.substr(5))) return on_v4;
    return added;
  }
  if (const auto* link = std::get_if<RemoveLink>(&operation)) return nothing_or(engine_.remove_link(link->name));
  if (const auto* faults = std::get_if<ReplaceFaults>(&operation)) return nothing_or(engine_.set_faults(faults->sets));
  const auto& change = std::get<SetEnabled>(operation);
  const auto changed = engine_.set_enabled(change.name, change.enabled);
  if (changed) return std::string();
  const auto stats = engine_.stats(change.name);
  return listening_error(stats ? stats->listen : change.name, changed.error());
}

}  // namespace leafcutter::node::toxiproxy
