#include "node/leaf/context.hpp"

#include "node/leaf/isolation.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::node {
namespace {

void add_ports(Value& variables, const scenarios::Service& service, const std::string& prefix) {
  if (service.ports.size() == 1) variables[prefix + "port"] = service.ports.front().number;
  for (const auto& port : service.ports) variables[prefix + "port." + port.name] = port.number;
}

}  // namespace

std::string data_folder(const std::string& service) { return std::string(leaf_data_root) + "/" + service; }

Value service_variables(const scenarios::Scenario& scenario) {
  Value variables = {{"scenario", scenario.folder}};
  for (const auto& service : scenario.services) {
    variables[service.name + ".host"] = service.name;
    variables[service.name + ".data"] = data_folder(service.name);
    add_ports(variables, service, service.name + ".");
  }
  return variables;
}

Value own_variables(const scenarios::Scenario& scenario, const scenarios::Service& service) {
  auto variables = service_variables(scenario);
  variables["data"] = data_folder(service.name);
  add_ports(variables, service, "");
  return variables;
}

base::Expected<std::vector<std::string>> expand_all(const std::vector<std::string>& texts, const Value& variables) {
  std::vector<std::string> out;
  for (const auto& text : texts) {
    auto expanded = scenarios::expand(text, variables);
    if (!expanded) return expanded.error();
    out.push_back(std::move(*expanded));
  }
  return out;
}

}  // namespace leafcutter::node
