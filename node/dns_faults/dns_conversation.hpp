// One client's dealings with a resolver under one DNS fault: which of its queries are struck, and what becomes of them
// and of the answers to them. Whole messages in, whole messages out; datagrams and streams are dns_filter.cpp's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/dns_faults/dns_fault.hpp"
#include "node/proxy/draws.hpp"
#include "protocols/dns.hpp"
#include "protocols/dns_match.hpp"
#include "protocols/dns_reply.hpp"

namespace leafcutter::node::dns_faults {

/// A DnsFault that was checked, taken apart.
struct DnsRule {
  DnsFault fault;
  proxy::Transport transport;
  protocols::DnsMatch match;
  std::vector<protocols::DnsAddress> addresses;
  protocols::DnsNegative negative;

  bool changes_replies() const {
    return fault.on_reply || fault.dns_case == DnsCase::ttl || fault.dns_case == DnsCase::wrong_id;
  }
};

/// Errors: bad_input.
base::Expected<DnsRule> compile(const DnsFault& fault, proxy::Transport transport);

/// The answer that the rule's case gives in the resolver's place. Errors: protocol, bad_input (no such answer to this
/// query); internal (a case that answers nothing).
base::Expected<protocols::DnsMessage> made_answer(const DnsRule& rule, const protocols::DnsMessage& query,
                                                  const std::array<std::uint8_t, 16>& random);

/// How many matching queries each link has seen. Used by all threads of an engine.
class DnsOccurrences {
 public:
  std::uint64_t next(const std::string& link) {
    const std::lock_guard lock(mutex_);
    return ++seen_[link];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> seen_;
};

/// What becomes of one message.
struct DnsOutcome {
  std::optional<std::string> onward;
  std::optional<std::string> back;
  proxy::Duration delay{0};
  std::string detail;   ///< empty: nothing to say
  bool struck = false;  ///< else `detail` says why it was let through as it came
};

/// Unanswered queries of one client whose answers are to be changed; with more the oldest is forgotten, and that is
/// said.
inline constexpr std::size_t most_awaited_answers = 256;

class DnsConversation {
 public:
  DnsConversation(std::shared_ptr<const DnsRule> rule, std::shared_ptr<DnsOccurrences> occurrences, std::string link,
                  std::uint64_t seed);

  DnsOutcome query(std::string message);
  DnsOutcome reply(std::string message);

  /// Where the messages of the answers begin is not known, so that nothing may be put among them.
  void answers_are_opaque() { opaque_ = true; }

 private:
  /// A struck query whose answer is to be changed.
  struct Awaited {
    std::uint16_t id;
    protocols::DnsQuestion question;
    std::uint64_t number;
    proxy::Duration delay;
    std::array<std::uint8_t, 16> random;
  };

  DnsOutcome strike(std::string message, const protocols::DnsMessage& query, std::uint64_t number);
  DnsOutcome await_answer(std::string message, const protocols::DnsMessage& query, std::uint64_t number,
                          proxy::Duration delay);
  base::Status change(std::string& message, const protocols::DnsMessage& reply, const Awaited& awaited) const;
  std::string said(const protocols::DnsQuestion& question, std::uint64_t number) const;
  proxy::Duration drawn_delay();
  std::array<std::uint8_t, 16> random_bytes();
  std::deque<Awaited>::iterator find(std::uint16_t id, const protocols::DnsQuestion& question);

  std::shared_ptr<const DnsRule> rule_;
  std::shared_ptr<DnsOccurrences> occurrences_;
  std::string link_;
  proxy::Draws selecting_, delaying_, values_;
  std::deque<Awaited> awaited_;
  bool opaque_ = false;
};

}  // namespace leafcutter::node::dns_faults
