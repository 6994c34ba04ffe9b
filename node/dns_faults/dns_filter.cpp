// DnsConversation on a link of the engine: a datagram is a message; a stream is messages behind their lengths, cut by
// nobody's rule.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "node/dns_faults/dns_conversation.hpp"
#include "node/proxy/filter.hpp"
#include "protocols/dns_frames.hpp"

namespace leafcutter::node::dns_faults {
namespace {

using proxy::Direction;
using proxy::Filtered;

/// Of a link, with the one who has the fault: the two directions of a connection meet here.
class DnsConversations {
 public:
  explicit DnsConversations(DnsRule rule) : rule_(std::make_shared<const DnsRule>(std::move(rule))) {}

  const DnsRule& rule() const { return *rule_; }

  /// A connection's. The engine makes the filter of the queries' direction first: its seed is the one used.
  std::shared_ptr<DnsConversation> of(const proxy::FilterContext& context) {
    const std::lock_guard lock(mutex_);
    if (open_.size() >= sweep_at_) {
      std::erase_if(open_, [](const auto& one) { return one.second.expired(); });
      sweep_at_ = 2 * open_.size() + 64;
    }
    const std::string link(context.link);
    auto& known = open_[{link, context.connection}];
    auto conversation = known.lock();
    if (!conversation) {
      conversation = std::make_shared<DnsConversation>(rule_, occurrences_, link, context.seed);
      known = conversation;
    }
    return conversation;
  }

 private:
  std::shared_ptr<const DnsRule> rule_;
  std::shared_ptr<DnsOccurrences> occurrences_ = std::make_shared<DnsOccurrences>();
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<DnsConversation>> open_;
  std::size_t sweep_at_ = 64;  ///< entries of connections that are over go when there are that many
};

DnsOutcome outcome_of(DnsConversation& conversation, Direction direction, std::string message) {
  return direction == Direction::to_upstream ? conversation.query(std::move(message))
                                             : conversation.reply(std::move(message));
}

void say(const DnsOutcome& outcome, std::size_t bytes, Filtered& filtered) {
  if (!outcome.detail.empty()) filtered.acts.push_back({outcome.detail, outcome.delay, bytes, outcome.struck});
}

class DnsDatagrams final : public proxy::StreamOrDatagramFilter {
 public:
  DnsDatagrams(std::shared_ptr<DnsConversation> conversation, Direction direction)
      : conversation_(std::move(conversation)), direction_(direction) {}

  Filtered arrived(std::string_view bytes) override {
    Filtered filtered;
    auto outcome = outcome_of(*conversation_, direction_, std::string(bytes));
    say(outcome, bytes.size(), filtered);
    if (outcome.onward) filtered.onward.push_back({std::move(*outcome.onward), outcome.delay});
    if (outcome.back) filtered.back.push_back({std::move(*outcome.back), outcome.delay});
    return filtered;
  }

 private:
  std::shared_ptr<DnsConversation> conversation_;
  Direction direction_;
};

/// Whether a message that has begun with these bytes (its length first) may be one of DNS in that direction. What is
/// not is not waited for: on a link that carries something else it might never come.
bool may_be_dns(std::string_view begun, Direction direction) {
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(begun[at])); };
  const auto number = [&](std::size_t at) { return byte(at) << 8 | byte(at + 1); };
  constexpr std::size_t length_bytes = 2;
  if (begun.size() > length_bytes + 2) {
    const bool response = (byte(4) & 0x80) != 0;
    const auto opcode = byte(4) >> 3 & 0xf;
    if (response != (direction == Direction::to_client) || opcode == 3 || opcode > 6) return false;
  }
  if (begun.size() < length_bytes + protocols::dns_header_bytes) return true;
  if ((byte(4) >> 3 & 0xf) == 0 && number(6) > 1) return false;  // RFC 9619
  constexpr std::size_t least_question = 5, least_record = 11;
  const auto records = number(8) + number(10) + number(12);
  return protocols::dns_header_bytes + number(6) * least_question + records * least_record <= number(0);
}

class DnsStream final : public proxy::StreamOrDatagramFilter {
 public:
  DnsStream(std::shared_ptr<DnsConversation> conversation, Direction direction, bool in_the_middle)
      : conversation_(std::move(conversation)), direction_(direction), unsure_(in_the_middle) {}

  Filtered arrived(std::string_view bytes) override {
    Filtered filtered;
    if (opaque_ || (std::exchange(unsure_, false) && !begins_a_message(bytes))) {
      give_up("the fault began within a message; where the next begins is not known", bytes.size(), filtered);
      pass(std::string(bytes), filtered);
      return filtered;
    }
    while (!bytes.empty() && !opaque_) {
      bytes.remove_prefix(reader_.feed(bytes));
      if (auto message = reader_.take()) judge(std::move(*message), filtered);
    }
    if (reader_.in_message() && !may_be_dns(reader_.partial(2 + protocols::dns_header_bytes), direction_)) {
      give_up("what comes is no DNS message", reader_.partial_bytes(), filtered);
      pass(removed(), filtered);
    }
    return filtered;
  }

  Filtered ended() override {
    Filtered filtered;
    if (const auto status = reader_.finish(); !status)
      filtered.acts.push_back({status.error().message, {}, reader_.partial_bytes(), false});
    pass(removed(), filtered);
    return filtered;
  }

  std::string removed() override { return std::exchange(reader_, {}).partial(); }
  std::size_t held_bytes() const override { return reader_.partial_bytes(); }

 private:
  /// A whole message at the front: nothing less tells a beginning from the middle of one.
  bool begins_a_message(std::string_view bytes) const {
    protocols::DnsFrameReader ahead;
    ahead.feed(bytes);
    const auto first = ahead.take();
    return first && may_be_dns(bytes, direction_) && protocols::parse_dns(*first);
  }

  void give_up(std::string why, std::size_t bytes, Filtered& filtered) {
    if (std::exchange(opaque_, true)) return;
    if (direction_ == Direction::to_client) conversation_->answers_are_opaque();
    filtered.acts.push_back(
        {std::move(why) + "; this direction of the connection is let through as it comes", {}, bytes, false});
  }

  void judge(std::string message, Filtered& filtered) {
    const auto size = message.size();
    auto outcome = outcome_of(*conversation_, direction_, std::move(message));
    say(outcome, size, filtered);
    if (outcome.onward) pass(framed(*outcome.onward), filtered, outcome.delay);
    if (outcome.back) filtered.back.push_back({framed(*outcome.back), outcome.delay});
  }

  /// No message is longer than its length can say: they were read so, or encoded within that limit.
  static std::string framed(std::string_view message) { return *protocols::dns_frame(message); }

  /// A delayed message lets those behind it overtake it, as a resolver would; the others are one passage.
  static void pass(std::string bytes, Filtered& filtered, proxy::Duration delay = {}) {
    if (bytes.empty()) return;
    if (delay.count() > 0)
      filtered.onward.push_back({std::move(bytes), delay, true});
    else if (!filtered.onward.empty() && !filtered.onward.back().overtaken)
      filtered.onward.back().bytes += bytes;
    else
      filtered.onward.push_back({std::move(bytes)});
  }

  std::shared_ptr<DnsConversation> conversation_;
  Direction direction_;
  protocols::DnsFrameReader reader_;
  bool unsure_;          ///< bytes went by before: the next may lie within a message
  bool opaque_ = false;  ///< messages cannot be told apart any more
};

class DnsFilterFactory final : public proxy::FilterFactory {
 public:
  explicit DnsFilterFactory(DnsRule rule) : conversations_(std::make_shared<DnsConversations>(std::move(rule))) {}

  std::unique_ptr<proxy::StreamOrDatagramFilter> make(const proxy::FilterContext& context) const override {
    const bool answers = context.direction == Direction::to_client;
    if (context.transport == proxy::Transport::tcp)
      // Answers are taken apart even when none is changed, so that ours come between two of them.
      return std::make_unique<DnsStream>(conversations_->of(context), context.direction, context.position > 0);
    if (answers && !conversations_->rule().changes_replies()) return nullptr;
    return std::make_unique<DnsDatagrams>(conversations_->of(context), context.direction);
  }

 private:
  std::shared_ptr<DnsConversations> conversations_;
};

}  // namespace

base::Expected<proxy::Fault> dns_fault(const DnsFault& fault, proxy::Transport transport, std::string id) {
  auto rule = compile(fault, transport);
  if (!rule) return rule.error();
  proxy::Fault made;
  made.id = id.empty() ? "dns-" + std::string(name_of(fault.dns_case)) : std::move(id);
  made.effect = proxy::Filter{std::make_shared<DnsFilterFactory>(std::move(*rule))};
  return made;
}

}  // namespace leafcutter::node::dns_faults
