// Carries out on an engine what the book of proxies wants. The engine outlives it.
#pragma once

#include "node/proxy/engine.hpp"
#include "node/toxiproxy/api.hpp"

namespace leafcutter::node::toxiproxy {

class EngineLinks final : public Links {
 public:
  explicit EngineLinks(proxy::Engine& engine) : engine_(engine) {}
  base::Expected<std::string> perform(const Operation& operation) override;
  proxy::EngineStats stats() const override { return engine_.stats(); }
  std::uint64_t accepted(const std::string& proxy) const override;

 private:
  base::Expected<std::string> add(const AddLink& link, const std::string& listen);
  proxy::Engine& engine_;
};

}  // namespace leafcutter::node::toxiproxy
