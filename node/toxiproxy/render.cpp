#include "node/toxiproxy/render.hpp"

#include <cmath>

namespace leafcutter::node::toxiproxy {
namespace {

using Ordered = nlohmann::ordered_json;

std::string dump_text(const Ordered& json) { return json.dump(-1, ' ', false, Ordered::error_handler_t::replace); }

/// 1, not 1.0.
Ordered json_number(double number) {
  if (std::floor(number) == number && std::fabs(number) < 1e15) return static_cast<std::int64_t>(number);
  return number;
}

Ordered json_value(const Only& only) {
  Ordered json = Ordered::object();
  if (only.connections != proxy::Ordinals{}) {
    json["connections"] = {{"first", only.connections.first}};
    if (only.connections.last <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      json["connections"]["last"] = only.connections.last;
    json["connections"]["every"] = only.connections.every;
  }
  if (!only.peers.empty()) json["peers"] = only.peers;
  return json;
}

Ordered json_value(const Toxic& toxic) {
  Ordered attributes = Ordered::object();
  if (const auto* kind = toxic_kind(toxic.type))
    for (const auto& attribute : kind->attributes) {
      const std::string name(attribute.name);
      const auto value = toxic.attributes.find(name);
      const auto number = value == toxic.attributes.end() ? 0 : value->second;
      if (!attribute.addition || number != 0) attributes[name] = number;
    }
  Ordered json = {{"attributes", std::move(attributes)},
                  {"name", toxic.name},
                  {"type", toxic.type},
                  {"stream", std::string(name_of(toxic.stream))},
                  {"toxicity", json_number(toxic.toxicity)}};
  if (toxic.only != Only{}) json["only"] = json_value(toxic.only);
  return json;
}

Ordered json_toxics(const Proxy& proxy) {
  Ordered list = Ordered::array();
  for (const auto stream : {Stream::upstream, Stream::downstream})
    for (const auto& toxic : proxy.toxics)
      if (toxic.stream == stream) list.push_back(json_value(toxic));
  return list;
}

Ordered json_value(const Proxy& proxy) {
  return {{"name", proxy.name},
          {"listen", proxy.listen},
          {"upstream", proxy.upstream},
          {"enabled", proxy.enabled},
          {"toxics", json_toxics(proxy)}};
}

}  // namespace

std::string json_of(const Toxic& toxic) { return dump_text(json_value(toxic)); }
std::string json_of_toxics(const Proxy& proxy) { return dump_text(json_toxics(proxy)); }
std::string json_of(const Proxy& proxy) { return dump_text(json_value(proxy)); }

std::string json_of(const std::map<std::string, Proxy>& proxies) {
  Ordered json = Ordered::object();
  for (const auto& [name, proxy] : proxies) json[name] = json_value(proxy);
  return dump_text(json);
}

std::string json_of_error(const std::string& message, unsigned status) {
  return dump_text({{"error", message}, {"status", status}});
}

std::string json_of_populated(const std::vector<const Proxy*>& proxies, const std::string& error, unsigned status) {
  Ordered json = Ordered::object();
  if (!error.empty()) json = {{"error", error}, {"status", status}};
  Ordered list = Ordered::array();
  for (const auto* proxy : proxies) list.push_back(json_value(*proxy));
  if (proxies.empty() && !error.empty())
    json["proxies"] = nullptr;
  else
    json["proxies"] = std::move(list);
  return dump_text(json);
}

}  // namespace leafcutter::node::toxiproxy
