#include "node/dns_faults/dns_conversation.hpp"

#include <algorithm>

namespace leafcutter::node::dns_faults {
namespace {

constexpr std::uint8_t opcode_query = 0;

DnsOutcome untouched(std::string message, std::string why = {}) {
  DnsOutcome outcome;
  outcome.onward = std::move(message);
  outcome.detail = std::move(why);
  return outcome;
}

bool same_question(const protocols::DnsQuestion& a, const protocols::DnsQuestion& b) {
  return a.type == b.type && a.class_number == b.class_number && same_name(a.name, b.name);
}

proxy::DrawKey key_of(std::uint64_t seed) { return {seed, {}, 0, proxy::Direction::to_upstream, "dns"}; }

}  // namespace

base::Expected<protocols::DnsMessage> made_answer(const DnsRule& rule, const protocols::DnsMessage& query,
                                                  const std::array<std::uint8_t, 16>& random) {
  using namespace protocols;
  const auto& fault = rule.fault;
  switch (fault.dns_case) {
    case DnsCase::truncated: return dns_truncation(query);
    case DnsCase::refused: return dns_failure(query, dns_rcode::refused);
    case DnsCase::serv_fail: return dns_failure(query, dns_rcode::server_failure);
    case DnsCase::nx_domain: return dns_negative(query, dns_rcode::name_error, rule.negative);
    case DnsCase::empty_answer: return dns_negative(query, dns_rcode::no_error, rule.negative);
    case DnsCase::wrong_answers: return dns_addresses(query, rule.addresses, fault.ttl, rule.negative);
    case DnsCase::random_address: return dns_random_address(query, random, fault.ttl, rule.negative);
    case DnsCase::delay:
    case DnsCase::timeout:
    case DnsCase::ttl:
    case DnsCase::wrong_id: break;
  }
  return base::Error{base::ErrorCode::internal, std::string(name_of(fault.dns_case)) + " makes no answer", {}};
}

DnsConversation::DnsConversation(std::shared_ptr<const DnsRule> rule, std::shared_ptr<DnsOccurrences> occurrences,
                                 std::string link, std::uint64_t seed)
    : rule_(std::move(rule)),
      occurrences_(std::move(occurrences)),
      link_(std::move(link)),
      selecting_(key_of(seed), "select"),
      delaying_(key_of(seed), "delay"),
      values_(key_of(seed), "value") {}

std::string DnsConversation::said(const protocols::DnsQuestion& question, std::uint64_t number) const {
  return std::string(name_of(rule_->fault.dns_case)) + ": " + question.name.text() + " " +
         protocols::dns_type_name(question.type) + ", query " + std::to_string(number);
}

proxy::Duration DnsConversation::drawn_delay() {
  if (!rule_->fault.delay) return proxy::Duration{0};
  const auto drawn = delaying_.duration(*rule_->fault.delay);
  return rule_->fault.cap ? std::min(drawn, *rule_->fault.cap) : drawn;
}

std::array<std::uint8_t, 16> DnsConversation::random_bytes() {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const auto drawn = values_.raw();
    for (std::size_t k = 0; k < 8; ++k) bytes[i + k] = static_cast<std::uint8_t>(drawn >> (8 * k));
  }
  return bytes;
}

std::deque<DnsConversation::Awaited>::iterator DnsConversation::find(std::uint16_t id,
                                                                     const protocols::DnsQuestion& question) {
  return std::find_if(awaited_.begin(), awaited_.end(),
                      [&](const Awaited& one) { return one.id == id && same_question(one.question, question); });
}

DnsOutcome DnsConversation::query(std::string message) {
  const auto query = protocols::parse_dns(message);
  if (!query) return untouched(std::move(message), "not a DNS message: " + query.error().message);
  if (query->response) return untouched(std::move(message), "an answer, where queries are expected");
  if (query->opcode != opcode_query || query->questions.size() != 1) return untouched(std::move(message));
  const auto& question = query->questions.front();
  // Asked again: what was decided about the first time is over.
  if (const auto before = find(query->id, question); before != awaited_.end()) awaited_.erase(before);
  if (!rule_->match.matches(question)) return untouched(std::move(message));
  const auto number = occurrences_->next(link_);
  if (!rule_->fault.occurrences.has(number) || !selecting_.happens(rule_->fault.probability))
    return untouched(std::move(message));
  return strike(std::move(message), *query, number);
}

DnsOutcome DnsConversation::strike(std::string message, const protocols::DnsMessage& query, std::uint64_t number) {
  const auto delay = drawn_delay();
  if (rule_->changes_replies()) return await_answer(std::move(message), query, number, delay);
  DnsOutcome outcome;
  outcome.delay = delay;
  outcome.struck = true;
  outcome.detail = said(query.questions.front(), number);
  if (rule_->fault.dns_case == DnsCase::delay) {
    outcome.onward = std::move(message);
  } else if (rule_->fault.dns_case != DnsCase::timeout) {
    if (opaque_)
      return untouched(std::move(message), outcome.detail +
                                               ": the fault began within an answer, and nothing can be "
                                               "put between answers until this connection is over");
    const auto answer = made_answer(*rule_, query, random_bytes());
    auto bytes = !answer                                     ? base::Expected<std::string>(answer.error())
                 : rule_->transport == proxy::Transport::udp ? encode_dns_datagram(*answer, dns_udp_limit(query))
                                                             : encode_dns(*answer);
    if (!bytes) return untouched(std::move(message), outcome.detail + ": " + bytes.error().message);
    outcome.back = std::move(*bytes);
  }
  return outcome;
}

DnsOutcome DnsConversation::await_answer(std::string message, const protocols::DnsMessage& query, std::uint64_t number,
                                         proxy::Duration delay) {
  std::string forgotten;
  if (awaited_.size() >= most_awaited_answers) {
    forgotten = said(awaited_.front().question, awaited_.front().number) +
                ": forgotten, as too many queries are without an answer";
    awaited_.pop_front();
  }
  awaited_.push_back({query.id, query.questions.front(), number, delay, random_bytes()});
  return untouched(std::move(message), std::move(forgotten));
}

DnsOutcome DnsConversation::reply(std::string message) {
  if (!rule_->changes_replies()) return untouched(std::move(message));
  const auto reply = protocols::parse_dns(message);
  if (!reply) return untouched(std::move(message), "not a DNS message: " + reply.error().message);
  if (!reply->response || reply->questions.size() != 1) return untouched(std::move(message));
  // A client may be answered more than once (a transfer, a duplicate): every time the same.
  const auto awaited = find(reply->id, reply->questions.front());
  if (awaited == awaited_.end()) return untouched(std::move(message));
  auto detail = said(awaited->question, awaited->number);
  auto changed = message;
  if (const auto status = change(changed, *reply, *awaited); !status)
    return untouched(std::move(message), detail + ": " + status.error().message);
  DnsOutcome outcome;
  outcome.onward = std::move(changed);
  outcome.delay = awaited->delay;
  outcome.detail = std::move(detail);
  outcome.struck = true;
  return outcome;
}

base::Status DnsConversation::change(std::string& message, const protocols::DnsMessage& reply,
                                     const Awaited& awaited) const {
  using namespace protocols;
  const auto& fault = rule_->fault;
  if (fault.dns_case == DnsCase::wrong_id) {
    const auto random = static_cast<std::uint16_t>(awaited.random[0] << 8 | awaited.random[1]);
    return dns_set_id(message, dns_other_id(awaited.id, random));
  }
  if (fault.dns_case == DnsCase::ttl) {
    const auto written = dns_set_ttls(message, fault.ttl);
    if (!written) return written.error();
    if (*written == 0) return base::Error{base::ErrorCode::protocol, "the resolver's answer has no record", {}};
    return base::ok();
  }
  DnsMessage changed = reply;
  if (fault.dns_case == DnsCase::truncated) {
    changed = dns_truncate(std::move(changed));
  } else {
    const auto& addresses =
        fault.dns_case == DnsCase::random_address ? dns_nobodys_addresses(awaited.random) : rule_->addresses;
    const auto count = dns_replace_addresses(changed, addresses);
    if (!count) return count.error();
    if (*count == 0)
      return base::Error{base::ErrorCode::protocol, "the resolver's answer has no address of that kind", {}};
  }
  auto bytes = encode_dns(changed);
  if (!bytes) return bytes.error();
  message = std::move(*bytes);
  return base::ok();
}

}  // namespace leafcutter::node::dns_faults
