#include "scenarios/model.hpp"

namespace leafcutter::scenarios {

const Port* Service::port(const std::string& port_name) const {
  for (const auto& port : ports)
    if (port.name == port_name) return &port;
  return nullptr;
}

std::string Link::id() const { return from + " -> " + to + (only_port ? "" : ":" + port); }

const Service* Scenario::service(const std::string& service_name) const {
  for (const auto& service : services)
    if (service.name == service_name) return &service;
  return nullptr;
}

const Link* Scenario::link(const std::string& link_id) const {
  for (const auto& link : links)
    if (link.id() == link_id) return &link;
  return nullptr;
}

}  // namespace leafcutter::scenarios
