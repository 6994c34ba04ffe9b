#include "targets.hpp"

#include <optional>
#include <stdexcept>
#include <string_view>

#include "corpus.hpp"
#include "host_targets.hpp"
#include "protocols/dns_frames.hpp"
#include "protocols/dns_reply.hpp"
#include "protocols/event.hpp"
#include "protocols/http.hpp"
#include "protocols/stream.hpp"
#include "run_targets.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_rule.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/predicate.hpp"
#include "scenarios/rule.hpp"

namespace fuzz {
namespace {

using namespace leafcutter;

std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void promise(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

int read_trace(const std::uint8_t* data, std::size_t size) {
  const protocols::DecodeLimits limits{1 << 20, 1 << 12};
  const auto events = protocols::decode_chunks(view(data, size), limits);
  if (!events) return 1;
  promise(events->size() <= limits.events * (size + 1), "more events than the limit");
  const auto again = protocols::decode_chunks(protocols::encode_chunk(*events));
  promise(again.ok() && *again == *events, "a trace that was read is not the same when written and read again");
  return 0;
}

int read_stream(const std::uint8_t* data, std::size_t size) {
  const auto header = protocols::decode_batch_header(view(data, size));
  const auto ack = protocols::decode_ack(view(data, size));
  if (header) {
    const auto again = protocols::decode_batch_header(protocols::encode(*header));
    promise(again.ok() && again->execution == header->execution && again->base == header->base &&
                again->count == header->count && again->last == header->last,
            "a batch header changes on its way");
    protocols::classify(*header, header->base);
  }
  if (ack) {
    const auto again = protocols::decode_ack(protocols::encode(*ack));
    promise(again.ok() && again->execution == ack->execution && again->next == ack->next &&
                again->complete == ack->complete,
            "an ack changes on its way");
  }
  return header || ack ? 0 : 1;
}

/// The messages read from `bytes`, fed `step` at a time, and whether it was HTTP to the end.
std::pair<std::vector<protocols::HttpMessage>, bool> http_messages(std::string_view bytes, std::size_t step,
                                                                   protocols::HttpReader::Role role) {
  protocols::HttpReader reader(role, 1024);
  std::vector<protocols::HttpMessage> messages;
  const auto collect = [&] {
    auto message = reader.take();
    if (message) messages.push_back(std::move(*message));
    return message.has_value();
  };
  while (!bytes.empty()) {
    auto piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    while (!piece.empty()) {
      const auto taken = reader.feed(piece);
      if (!taken) return {std::move(messages), false};
      promise(*taken <= piece.size(), "feed takes more than it is given");
      promise(*taken > 0 || collect(), "feed takes nothing and has nothing");
      piece.remove_prefix(*taken);
      collect();
    }
  }
  const bool ended_well = reader.finish().ok();
  collect();
  return {std::move(messages), ended_well};
}

int read_http(const std::uint8_t* data, std::size_t size) {
  const auto bytes = view(data, size);
  int refused = 1;
  for (const auto role : {protocols::HttpReader::Role::request, protocols::HttpReader::Role::response}) {
    const auto [whole, well] = http_messages(bytes, bytes.size() + 1, role);
    const auto [pieces, pieces_well] = http_messages(bytes, 1, role);
    promise(well == pieces_well, "whether bytes are HTTP depends on how they arrive");
    promise(whole.size() == pieces.size(), "how many messages there are depends on how they arrive");
    std::size_t total = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      promise(whole[i].target == pieces[i].target && whole[i].status == pieces[i].status &&
                  whole[i].body == pieces[i].body && whole[i].bytes == pieces[i].bytes,
              "what a message says depends on how it arrives");
      promise(whole[i].body.size() <= 1024, "a body is longer than its limit");
      total += whole[i].bytes;
    }
    promise(total <= size, "messages are longer than what came");
    if (well) refused = 0;
  }
  return refused;
}

/// The messages in a TCP stream, fed `step` bytes at a time.
std::vector<std::string> dns_frames_of(std::string_view bytes, std::size_t step) {
  protocols::DnsFrameReader reader;
  std::vector<std::string> messages;
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, step);
    const auto taken = reader.feed(piece);
    promise(taken > 0 && taken <= piece.size(), "a DNS stream is not taken, or more than came");
    bytes.remove_prefix(taken);
    if (auto message = reader.take()) messages.push_back(std::move(*message));
  }
  return messages;
}

/// An answer can be sent, is read as what it was, and belongs to its query.
void check_dns_reply(const protocols::DnsMessage& query, const base::Expected<protocols::DnsMessage>& reply) {
  if (!reply) return;
  const auto sent = protocols::encode_dns(*reply);
  promise(sent.ok(), "an answer to a query cannot be sent");
  const auto read = protocols::parse_dns(*sent);
  promise(read.ok() && *read == *reply, "an answer to a query changes on its way");
  promise(read->id == query.id && read->response && read->questions == query.questions,
          "an answer does not belong to its query");
}

void check_dns_ttls(const protocols::DnsMessage& message, std::string bytes) {
  if (!protocols::dns_set_ttls(bytes, 7)) return;
  auto expected = message;
  for (auto* section : {&expected.answers, &expected.authorities, &expected.additional}) {
    for (auto& record : *section)
      if (record.type != protocols::dns_type::opt) record.ttl = 7;
  }
  const auto read = protocols::parse_dns(bytes);
  promise(read.ok() && *read == expected, "other TTLs change something else");
}

int read_dns(const std::uint8_t* data, std::size_t size) {
  const auto bytes = view(data, size);
  promise(dns_frames_of(bytes, size + 1) == dns_frames_of(bytes, 1), "a DNS stream depends on how it arrives");
  const auto message = protocols::parse_dns(bytes);
  promise(protocols::dns_ttl_fields(bytes).ok() == message.ok(), "TTLs are found in what is not read, or the reverse");
  if (!message) return 1;
  // Written without pointers where none are allowed, a message may grow beyond what one can hold.
  if (const auto sent = protocols::encode_dns(*message)) {
    const auto again = protocols::parse_dns(*sent);
    promise(again.ok() && *again == *message, "a DNS message changes on its way");
  } else {
    promise(size > 16384, "a short DNS message cannot be written again");
  }
  check_dns_ttls(*message, std::string(bytes));
  check_dns_reply(*message, protocols::dns_failure(*message, protocols::dns_rcode::refused));
  check_dns_reply(*message, protocols::dns_truncation(*message));
  check_dns_reply(*message, protocols::dns_negative(*message, protocols::dns_rcode::name_error, {}));
  check_dns_reply(*message, protocols::dns_random_address(*message, {}, 1, {}));
  for (const auto& question : message->questions) {
    const auto again = protocols::DnsName::from_text(question.name.text());
    promise(again.ok() && *again == question.name, "a name's text is another name");
  }
  return 0;
}

int read_scenario(const std::uint8_t* data, std::size_t size) {
  scenarios::LoadOptions options;
  options.check_programs = false;
  const auto result = scenarios::load_text(view(data, size), "scenario.yaml", options);
  promise(result.scenario.has_value() == result.errors.empty(), "a scenario with mistakes, or none without a mistake");
  for (const auto& error : result.errors) {
    promise(error.code == base::ErrorCode::bad_input, "a mistake in a scenario that is not bad input");
    promise(!error.message.empty() && error.where.file == "scenario.yaml",
            "a mistake that does not say what and where");
  }
  return result.scenario ? 0 : 1;
}

int read_plan(const std::uint8_t* data, std::size_t size) {
  const auto value = protocols::unpack(view(data, size));
  if (!value) return 1;
  const auto plan = scenarios::plan_from(*value);
  if (!plan) return 1;
  const auto again = scenarios::plan_from(scenarios::to_value(*plan));
  promise(again.ok() && *again == *plan, "a plan changes on its way");
  promise(scenarios::digest(*again) == scenarios::digest(*plan), "the same plan has two digests");
  return 0;
}

void promise_kept(const scenarios::Fault& fault) {
  const auto* kind = scenarios::fault_kind(fault.kind);
  promise(kind != nullptr && scenarios::check_params(*kind, fault.params).ok(), "a rule makes a fault of no kind");
  const auto kept = scenarios::fault_from(scenarios::to_value(fault));
  promise(kept.ok() && *kept == fault, "a rule changes on its way into a plan");
  for (const auto& pattern : scenarios::event_patterns_of(fault))
    promise(scenarios::parse_event_pattern(pattern).ok(), "a rule waits for what is no event pattern");
}

int read_link_rule_line(std::string_view line) {
  scenarios::LinkRuleScope scope;
  scope.links = {{"shop", "broker", "main", scenarios::Protocol::tcp, 1, false},
                 {"shop", "broker", "http", scenarios::Protocol::http, 2, false},
                 {"till", "names", "main", scenarios::Protocol::udp, 3, true}};
  scope.between = {{{"shop"}, {"broker"}, {scope.links[0], scope.links[1]}}};
  bool read = false;
  for (const auto& link : scope.links) {
    auto one = scope;
    one.links = {link};
    scenarios::Mistake mistake;
    const auto faults = scenarios::read_link_rule(line, one, mistake);
    if (!faults) {
      promise(!mistake.message.empty() && mistake.at <= line.size() && mistake.at + mistake.bytes <= line.size(),
              "a mistake in a rule of links that does not say what and where");
      continue;
    }
    read = true;
    for (const auto& fault : *faults) promise_kept(fault);
    auto again = scenarios::read_link_rule(scenarios::rule_text(faults->front()), one, mistake);
    if (again) again->front().site.lane = faults->front().site.lane;  // which rule_text() leaves out
    promise(again && again->front() == faults->front(),
            "a rule of links that was read is not the same when written and read again");
  }
  return read ? 0 : 1;
}

int read_rule_line(const std::uint8_t* data, std::size_t size) {
  if (scenarios::names_link_kind(view(data, size))) return read_link_rule_line(view(data, size));
  scenarios::RuleScope scope;
  scope.lane = "shop";
  scope.services = {"shop", "broker"};
  scenarios::Mistake mistake;
  const auto fault = scenarios::read_rule(view(data, size), scope, mistake);
  if (!fault) {
    promise(!mistake.message.empty() && mistake.at <= size && mistake.at + mistake.bytes <= size,
            "a mistake in a rule that does not say what and where");
    return 1;
  }
  promise_kept(*fault);
  const auto lane = fault->site.lane;
  scope.lane = lane;
  const auto again = scenarios::read_rule(scenarios::rule_text(*fault), scope, mistake);
  promise(again && *again == *fault, "a rule that was read is not the same when written and read again");
  return 0;
}

int run_lua(const std::uint8_t* data, std::size_t size) {
  auto expression = scenarios::LuaExpression::compile(std::string(view(data, size)));
  if (!expression) return 1;
  const protocols::Value globals = {{"status", 201}, {"json", {{"id", "order-1"}}}};
  const auto first = expression->evaluate(globals);
  const auto second = expression->evaluate(globals);
  promise(first.ok() == second.ok(), "an expression is carried over from one evaluation to the next");
  return first ? 0 : 1;
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> list = {{"trace", read_trace, trace_corpus},
                                           {"stream", read_stream, stream_corpus},
                                           {"http", read_http, http_corpus},
                                           {"dns", read_dns, dns_corpus},
                                           {"scenario", read_scenario, scenario_corpus},
                                           {"plan", read_plan, plan_corpus},
                                           {"lua", run_lua, lua_corpus},
                                           {"rule", read_rule_line, rule_corpus},
                                           {"run", read_run_document, run_corpus},
                                           {"journal", read_journal, journal_corpus},
                                           {"toxiproxy", answer_toxiproxy, toxiproxy_corpus},
                                           {"profile", read_host_profile, profile_corpus},
                                           {"audit", verify_audit_log, audit_corpus}};
  return list;
}

}  // namespace fuzz
