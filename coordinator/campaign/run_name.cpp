#include "coordinator/campaign/run_name.hpp"

#include <charconv>
#include <string_view>

#include "coordinator/campaign/order.hpp"

namespace leafcutter::coordinator {
namespace {

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string execution_of(const RunName& name) {
  if (name.run.ends_with('#')) return name.run + std::to_string(name.attempt);
  return name.attempt == 0 ? name.run : name.run + "." + std::to_string(name.attempt);
}

std::optional<RunName> parse_execution(const std::string& execution) {
  const auto hash = execution.find('#');
  if (hash == std::string::npos || hash == 0 || hash + 1 == execution.size()) return std::nullopt;
  if (const auto attempt = number(std::string_view(execution).substr(hash + 1)))
    return RunName{execution.substr(0, hash + 1), *attempt};
  const auto dot = execution.find('.', hash);
  if (dot == std::string::npos) return RunName{execution, 0};
  const auto attempt = number(std::string_view(execution).substr(dot + 1));
  if (!attempt || *attempt == 0 || dot == hash + 1) return std::nullopt;
  return RunName{execution.substr(0, dot), *attempt};
}

std::string next_attempt(const std::string& execution) {
  auto name = parse_execution(execution);
  if (!name) return execution + ".1";
  ++name->attempt;
  return execution_of(*name);
}

}  // namespace leafcutter::coordinator
