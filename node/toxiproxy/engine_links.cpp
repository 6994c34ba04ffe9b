#include "node/toxiproxy/engine_links.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

/// As Toxiproxy's clients know it.
base::Error listening_error(const std::string& listen, base::Error error) {
  error.message = "listen tcp " + listen + ": " +
                  (error.code == base::ErrorCode::conflict ? "bind: address already in use" : error.message);
  return error;
}

base::Expected<std::string> nothing_or(const base::Status& status) {
  if (!status) return status.error();
  return std::string();
}

}  // namespace

base::Expected<std::string> EngineLinks::add(const AddLink& link, const std::string& listen) {
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
