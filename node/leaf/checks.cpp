#include "node/leaf/checks.hpp"

#include "node/leaf/client.hpp"
#include "node/leaf/text.hpp"
#include "node/leaf/workload.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::node {
namespace {

using scenarios::Check;
constexpr std::size_t kept_output = 64 * 1024;

Value check_command(LeafContext& context, const Check& check) {
  auto argv = expand_all(check.command, context.variables);
  if (!argv) return {{"ok", false}, {"detail", argv.error().text()}};
  const auto result = run_in_workload(context, *argv, check.within);
  if (!result.ending.error.empty() || result.timed_out)
    return {{"ok", false}, {"detail", check.command[0] + ": " + describe(result)}};
  const int exit = result.ending.signal != 0 ? 128 + result.ending.signal : result.ending.status;
  Value attrs = {{"exit", exit}, {"stdout", clean_text(result.output, kept_output)}};
  add_json(attrs, result.output);
  attrs["ok"] = exit == check.exit.value_or(0) && scenarios::matches(check.reply, attrs);
  if (attrs["ok"] == false) attrs["detail"] = describe(result);
  return attrs;
}

Value check_http(LeafContext& context, const Check& check) {
  const auto* service = context.scenario.service(check.http_service);
  const auto* port = service == nullptr         ? nullptr
                     : !check.http_port.empty() ? service->port(check.http_port)
                     : !service->ports.empty()  ? &service->ports.front()
                                                : nullptr;
  auto path = scenarios::expand(check.http_path, context.variables);
  if (port == nullptr || !path)
    return {{"ok", false}, {"detail", path ? "there is no such port" : path.error().text()}};
  const EnterNetwork inside(context.network.of(check.http_service), context.network.home());
  HttpCall call;
  call.target = std::move(*path);
  call.host = check.http_service + ":" + std::to_string(port->number);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(check.within);
  const auto endpoints = local_endpoints(context.network.address(check.http_service), port->number);
  auto reply =
      inside.status() ? http_call(endpoints, call, deadline) : base::Expected<HttpReply>(inside.status().error());
  if (!reply) return {{"ok", false}, {"detail", reply.error().text()}};
  Value attrs = {{"status", reply->status}, {"body", clean_text(reply->body, kept_output)}};
  add_json(attrs, reply->body);
  attrs["ok"] = check.reply.empty() ? reply->status / 100 == 2 : scenarios::matches(check.reply, attrs);
  if (attrs["ok"] == false) attrs["detail"] = call.host + call.target + " answered " + std::to_string(reply->status);
  return attrs;
}

}  // namespace

void run_checks(LeafContext& context, const std::function<void(const std::string&)>& awaiting) {
  for (const auto& property : context.scenario.properties) {
    if (property.kind != scenarios::Property::Kind::check) continue;
    awaiting("the check \"" + property.name + "\"");
    auto attrs =
        property.check.command.empty() ? check_http(context, property.check) : check_command(context, property.check);
    attrs["property"] = property.name;
    context.recorder.record(scenarios::workload_lane, scenarios::events::check, std::move(attrs));
  }
}

}  // namespace leafcutter::node
