// Carries out on an engine what the book of proxies wants. The engine outlives it.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "node/proxy/engine.hpp"
#include "node/proxy/resolver.hpp"
#include "node/toxiproxy/api.hpp"

namespace leafcutter::node::toxiproxy {

class EngineLinks final : public Links {
 public:
  explicit EngineLinks(proxy::Engine& engine) : engine_(engine) {}
  base::Expected<std::string> perform(const Operation& operation) override;
  proxy::EngineStats stats() const override { return engine_.stats(); }
  std::uint64_t accepted(const std::string& proxy) const override;

  /// What a name that is to be listened on stands for. Proxies listen on no other: they would have to wait for name
  /// servers. From any thread.
  void remember(const proxy::HostPort& name, const proxy::Resolver::Addresses& addresses);

 private:
  base::Expected<std::string> address_of(const std::string& listen) const;
  base::Expected<std::string> add(const AddLink& link, const std::string& listen);
  proxy::Engine& engine_;
  mutable std::mutex mutex_;
  std::map<std::string, proxy::Resolver::Addresses> names_;
};

}  // namespace leafcutter::node::toxiproxy
