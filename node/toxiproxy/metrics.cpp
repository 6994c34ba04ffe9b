#include "node/toxiproxy/metrics.hpp"

#include <functional>

#include "http/exposition.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using http::Exposition;

using LinkValue = std::function<std::uint64_t(const proxy::LinkStats&)>;

/// One family with a sample for each proxy that has a link.
void link_family(Exposition& out, const proxy::EngineStats& engine, const char* name, const char* type,
                 const char* help, const LinkValue& value) {
  out.family(name, type, help);
  for (const auto& [link, stats] : engine.links) out.sample({{"proxy", link}}, value(stats));
}

/// Toxiproxy's own: the bytes of each way.
void byte_families(Exposition& out, const proxy::EngineStats& engine) {
  const auto both_ways = [&](const LinkValue& up, const LinkValue& down) {
    for (const auto& [link, stats] : engine.links)
      for (const bool upstream : {true, false})
        out.sample({{"direction", upstream ? "upstream" : "downstream"},
                    {"listener", stats.listen},
                    {"proxy", link},
                    {"upstream", stats.upstream}},
                   upstream ? up(stats) : down(stats));
  };
  out.family("toxiproxy_proxy_received_bytes_total", "counter", "Bytes that came in.");
  both_ways([](const auto& s) { return s.bytes_from_client; }, [](const auto& s) { return s.bytes_from_upstream; });
  out.family("toxiproxy_proxy_sent_bytes_total", "counter", "Bytes that were passed on.");
  both_ways([](const auto& s) { return s.bytes_to_upstream; }, [](const auto& s) { return s.bytes_to_client; });
}

void toxic_families(Exposition& out, const Book& book, const proxy::EngineStats& engine) {
  const auto each_toxic = [&](const std::function<std::string(const proxy::FaultStats&)>& value) {
    for (const auto& [name, proxy] : book.proxies()) {
      const auto link = engine.links.find(name);
      if (link == engine.links.end()) continue;
      for (const auto& toxic : proxy.toxics) {
        const auto fault = link->second.faults.find(toxic.name);
        if (fault == link->second.faults.end()) continue;
        out.sample({{"proxy", name},
                    {"toxic", toxic.name},
                    {"type", toxic.type},
                    {"stream", std::string(name_of(toxic.stream))}},
                   value(fault->second));
      }
    }
  };
  out.family("leafcutter_toxic_strikes_total", "counter", "Times that the toxic did something.");
  each_toxic([](const auto& s) { return std::to_string(s.strikes); });
  out.family("leafcutter_toxic_bytes_total", "counter", "Bytes that it did something to.");
  each_toxic([](const auto& s) { return std::to_string(s.bytes); });
  out.family("leafcutter_toxic_passed_over_total", "counter", "Connections that its toxicity left alone.");
  each_toxic([](const auto& s) { return std::to_string(s.passed_over); });
  out.family("leafcutter_toxic_delay_seconds_total", "counter", "Delays that it decided, added up.");
  each_toxic([](const auto& s) { return std::to_string(std::chrono::duration<double>(s.delay).count()); });
}

}  // namespace

std::string metrics_text(const Book& book, const proxy::EngineStats& engine, const ApiStats& api) {
  Exposition out;
  byte_families(out, engine);
  out.family("leafcutter_proxy_enabled", "gauge", "1: the proxy accepts connections.");
  for (const auto& [name, proxy] : book.proxies()) out.sample({{"proxy", name}}, proxy.enabled ? 1 : 0);
  link_family(out, engine, "leafcutter_proxy_connections_total", "counter", "Connections accepted.",
              [](const auto& s) { return s.accepted; });
  link_family(out, engine, "leafcutter_proxy_connections_active", "gauge", "Connections that are open.",
              [](const auto& s) { return s.active; });
  link_family(out, engine, "leafcutter_proxy_connections_struck_total", "counter",
              "Connections that a toxic did something to.", [](const auto& s) { return s.struck_connections; });
  link_family(out, engine, "leafcutter_proxy_connect_failures_total", "counter",
              "Connections that did not reach the upstream.", [](const auto& s) { return s.connect_failed; });
  link_family(out, engine, "leafcutter_proxy_held_bytes", "gauge", "Bytes held by toxics and for slow readers.",
              [](const auto& s) { return s.held_bytes; });
  toxic_families(out, book, engine);
  out.family("leafcutter_api_replies_total", "counter", "Replies of this interface, by status.");
  for (std::size_t digit = 2; digit < api.replies.size(); ++digit)
    out.sample({{"status", std::to_string(digit) + "xx"}}, api.replies[digit]);
  return out.take();
}

}  // namespace leafcutter::node::toxiproxy
