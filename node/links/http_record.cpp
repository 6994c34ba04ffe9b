#include "node/links/http_record.hpp"

#include "node/links/message_value.hpp"
#include "node/links/path_class.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

constexpr std::size_t longest_target = 4 * 1024;
constexpr std::size_t longest_method = 32;
constexpr std::size_t longest_label = 200;

std::int64_t started_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::replied: return "replied";
    case Outcome::lost: return "lost";
    case Outcome::reset: return "reset";
    case Outcome::blackholed: return "blackholed";
    case Outcome::no_reply: return "no-reply";
  }
  return "?";
}

Value reply_part(const Exchange& exchange, bool delivered) {
  Value reply = {{"status", exchange.response->status}, {"delivered", delivered}};
  add_body(reply, *exchange.response);
  return reply;
}

Value reply_attributes(const LinkContext& context, const Exchange& exchange) {
  Value attrs = {{"from", context.link.to},   {"to", context.link.from}, {"port", context.link.port},
                 {"method", exchange.method}, {"path", exchange.path},   {"status", exchange.response->status}};
  add_body(attrs, *exchange.response);
  auto request = Value::object();
  add_body(request, exchange.request);
  attrs["request"] = std::move(request);
  return attrs;
}

}  // namespace

Exchange begin_exchange(LinkContext& context, const protocols::HttpMessage& head) {
  Exchange exchange;
  const auto target = split_target(head.target);
  exchange.method = printable(head.method, longest_method);
  exchange.path = printable(target.path, longest_target);
  exchange.query = printable(target.query, longest_target);
  exchange.label = printable("request " + context.id + " " + exchange.method + " " + exchange.path, longest_label);
  exchange.started = context.proxy.clock();
  exchange.request_clock = context.proxy.recorder.now(context.link.from);
  exchange.waits_for_continue = !head.header("expect").empty();
  context.proxy.activity.begin(exchange.label);
  return exchange;
}

void end_exchange(LinkContext& context, Exchange& exchange, Outcome outcome) {
  auto& recorder = context.proxy.recorder;
  const bool delivered = outcome == Outcome::replied;
  Value attrs = {{"from", context.link.from},   {"to", context.link.to},
                 {"port", context.link.port},   {"method", exchange.method},
                 {"path", exchange.path},       {"query", exchange.query},
                 {"outcome", name_of(outcome)}, {"started_ms", started_milliseconds(exchange.started)}};
  add_body(attrs, exchange.request);
  if (exchange.response) attrs["reply"] = reply_part(exchange, delivered);
  const auto asked =
      recorder.record(context.id, events::request, std::move(attrs), {exchange.request_clock, exchange.response_clock});
  if (delivered) {
    const auto answered = recorder.record(context.id, events::reply, reply_attributes(context, exchange), {asked});
    recorder.deliver(context.link.from, answered);
  }
  context.proxy.activity.end(exchange.label);
}

}  // namespace leafcutter::node
