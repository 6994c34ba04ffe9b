#include "node/links/http_tap.hpp"

#include "node/links/message_value.hpp"
#include "node/links/path_class.hpp"

namespace leafcutter::node {
namespace {

/// Requests of one connection that may be under way at once (pipelining); more wait unread.
constexpr std::size_t most_under_way = 64;

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

bool interim(unsigned status) { return status >= 100 && status < 200 && status != 101; }

}  // namespace

HttpTap::HttpTap(LinkContext& context, Wire& wire) : context_(context), wire_(wire) {}

// --- requests ---

void HttpTap::up_arrived() {
  auto& up = wire_.up();
  while (!struck_ && plain_.empty() && !up.unseen().empty()) {
    if (!reading_ && (gate_ != Gate::open || awaiting_.size() + delivering_.size() >= most_under_way)) break;
    const auto taken = requests_.feed(up.unseen());
    if (!taken) {
      fall_back(taken.error().message);
      break;
    }
    up.seen(*taken);
    if (!reading_ && requests_.head() != nullptr) begin_request(*requests_.head());
    const auto current = reading_;
    if (auto message = requests_.take()) {
      reading_->request = std::move(*message);
      reading_->request_complete = true;
      reading_.reset();
    }
    // Until its head is complete a request is held back whole, so that a fault can still prevent it.
    if (current && gate_ == Gate::open) up.allow();
    if (gate_ == Gate::striking) try_strike();
  }
  if (struck_ || gate_ != Gate::open) return;
  if (!plain_.empty()) {
    context_.carry_up();
    up.allow_everything();
  } else if (up_over_ && up.unseen().empty()) {
    up.allow_everything();  // half a head: whatever the callee makes of it
  }
}

void HttpTap::up_ended() {
  up_over_ = true;
  up_arrived();
  if (gate_ == Gate::striking) try_strike();
}

void HttpTap::begin_request(const protocols::HttpMessage& head) {
  arrival_ = Clock::now();
  const auto exchange = std::make_shared<Exchange>(begin_exchange(context_, head));
  exchange->request = head;
  reading_ = exchange;
  awaiting_.push_back(exchange);
  const auto resource = printable(head.method, 32) + " " + printable(path_class(split_target(head.target).path), 256);
  strikes_ = link_strikes(context_.proxy.sites.visit({context_.id, "request", resource},
                                                     SiteBook::LinkFacts{wire_.number(), ++requests_begun_}));
  if (!strikes_.delays.empty()) {
    gate_ = Gate::delayed;
    wire_.wake_at(arrival_ + strikes_.delay());
  } else {
    let_go();
  }
}

/// The newest request is not (or no longer) delayed: it goes on, or what ends it comes next.
void HttpTap::let_go() {
  auto& exchange = *awaiting_.back();
  if (strikes_.final && strikes_.final->end != LinkStrikes::End::lose_response) {
    gate_ = Gate::striking;
    return;
  }
  if (strikes_.final) exchange.lose = strikes_.final->index;
  gate_ = Gate::open;
  exchange.forwarded = true;
  context_.proxy.recorder.deliver(context_.link.to, exchange.request_clock);
}

void HttpTap::woken() {
  if (gate_ != Gate::delayed || struck_) return;
  release_delay();
  let_go();
  if (gate_ == Gate::striking) {
    try_strike();
  } else {
    if (plain_.empty()) wire_.up().allow();
    up_arrived();
  }
  if (!struck_) wire_.resume();
}

void HttpTap::release_delay() {
  const auto actual = Clock::now() - arrival_;
  for (const auto& delay : strikes_.delays) {
    context_.fired(
        delay.index,
        {{"conn", wire_.number()}, {"scheduled_ms", milliseconds(delay.length)}, {"actual_ms", milliseconds(actual)}},
        context_.link.to);
    context_.proxy.sites.undone(delay.index, "the request was let go");
  }
}

/// Strikes once the request has arrived as far as it will and everything before it is over, so that neither the way the
/// caller cuts its bytes nor an answer that is still due changes what the fault does.
void HttpTap::try_strike() {
  if (struck_) return;
  const auto& exchange = awaiting_.back();
  const bool its_turn = awaiting_.size() == 1 && delivering_.empty();
  const bool arrived = exchange->request_complete || exchange->waits_for_continue || up_over_ || wire_.up().full();
  if ((its_turn && arrived) || !plain_.empty()) strike();
}

void HttpTap::strike() {
  struck_ = true;
  gate_ = Gate::open;
  const auto exchange = awaiting_.back();
  awaiting_.pop_back();
  reading_.reset();
  const auto index = strikes_.final->index;
  const auto held = wire_.up().held();
  if (strikes_.final->end == LinkStrikes::End::blackhole) {
    context_.fired(index, {{"conn", wire_.number()}, {"bytes_withheld", held}}, context_.link.from);
    end(*exchange, Outcome::blackholed);
    wire_.strike_blackhole(index);
  } else {
    context_.fired(index, {{"conn", wire_.number()}, {"request_bytes", held}, {"bytes_forwarded", 0}},
                   context_.link.from);
    end(*exchange, Outcome::reset);
    wire_.strike_reset("reset", index);
  }
}

// --- responses ---

void HttpTap::down_arrived() {
  auto& down = wire_.down();
  while (!struck_ && plain_.empty() && !down.unseen().empty()) {
    if (awaiting_.empty() || !awaiting_.front()->forwarded) {
      fall_back("bytes from the callee that answer no request");
      break;
    }
    const auto exchange = awaiting_.front();
    if (!responses_.in_message() && exchange->method == "HEAD") responses_.expect_head_response();
    const auto taken = responses_.feed(down.unseen());
    if (!taken) {
      fall_back(taken.error().message);
      break;
    }
    down.seen(*taken);
    if (const auto* head = responses_.head(); head != nullptr && !interim(head->status) && !exchange->responding)
      response_head(*exchange, head->status);
    if (!plain_.empty()) break;
    auto message = responses_.take();
    if (!exchange->lose || (message && interim(message->status)))
      down.allow();
    else if (exchange->responding)
      down.drop_held();
    if (message && !response_complete(std::move(*message))) break;
  }
  if (!plain_.empty() && !struck_) {
    context_.carry_down();
    down.allow_everything();
  }
}

void HttpTap::response_head(Exchange& exchange, unsigned status) {
  exchange.responding = true;
  if (!exchange.lose) context_.carry_down();
  if (exchange.method != "CONNECT" || status < 200 || status > 299) return;
  // A tunnel: what follows this head is not HTTP of this connection any more.
  exchange.response = *responses_.head();
  exchange.response_clock = context_.proxy.recorder.now(context_.link.to);
  exchange.response_end = wire_.down().total_when_seen_left();
  delivering_.push_back(awaiting_.front());
  awaiting_.pop_front();
  fall_back("a tunnel was opened");
}

/// False: nothing is read any further.
bool HttpTap::response_complete(protocols::HttpMessage message) {
  if (interim(message.status)) return true;
  const auto exchange = awaiting_.front();
  const auto status = message.status;
  exchange->response = std::move(message);
  exchange->response_clock = context_.proxy.recorder.now(context_.link.to);
  awaiting_.pop_front();
  if (exchange->lose) {
    lose(exchange);
    return false;
  }
  context_.proxy.recorder.deliver(context_.link.from, exchange->response_clock);
  exchange->response_end = wire_.down().total_when_seen_left();
  delivering_.push_back(exchange);
  if (status == 101) fall_back("the protocol was changed by an Upgrade");
  return true;
}

void HttpTap::lose(const std::shared_ptr<Exchange>& exchange) {
  struck_ = true;
  context_.fired(*exchange->lose,
                 {{"conn", wire_.number()},
                  {"status", exchange->response->status},
                  {"response_bytes", exchange->response->bytes},
                  {"request_forwarded", true}},
                 context_.link.from);
  end(*exchange, Outcome::lost);
  wire_.strike_reset("lose-response", *exchange->lose);
}

void HttpTap::down_ended() {
  if (struck_ || !plain_.empty()) return;
  if (responses_.finish() && !awaiting_.empty()) {
    if (auto message = responses_.take()) response_complete(std::move(*message));
    if (struck_) return;
  }
  wire_.down().allow_everything();
  // No response can come any more for what has gone to the callee. (What a fault still holds back is not there yet.)
  while (!awaiting_.empty() && awaiting_.front()->forwarded) {
    const auto exchange = awaiting_.front();
    awaiting_.pop_front();
    end(*exchange, Outcome::no_reply);
  }
  if (gate_ == Gate::striking) try_strike();
}

void HttpTap::down_left() {
  bool any = false;
  while (!delivering_.empty() && delivering_.front()->response_end <= wire_.down().total()) {
    const auto exchange = delivering_.front();
    delivering_.pop_front();
    end(*exchange, Outcome::replied);
    any = true;
  }
  if (!any || struck_) return;
  if (gate_ == Gate::striking)
    try_strike();
  else
    up_arrived();
  if (!struck_) wire_.resume();
}

// --- ends ---

void HttpTap::end(Exchange& exchange, Outcome outcome) { end_exchange(context_, exchange, outcome); }

void HttpTap::fall_back(const std::string& why) {
  plain_ = why;
  if (gate_ == Gate::striking) {
    strike();  // its turn would never come: nobody can tell any more when what is before it is over
    return;
  }
  if (gate_ == Gate::open) {
    context_.carry_up();
    wire_.up().allow_everything();
  }
  context_.carry_down();
  wire_.down().allow_everything();
  wire_.resume();
}

void HttpTap::connection_ended(Outcome outcome) {
  for (auto* queue : {&delivering_, &awaiting_}) {
    for (const auto& exchange : *queue) end(*exchange, outcome);
    queue->clear();
  }
  reading_.reset();
  struck_ = true;
}

void HttpTap::abandon() {
  for (auto* queue : {&delivering_, &awaiting_}) {
    for (const auto& exchange : *queue) context_.proxy.activity.end(exchange->label);
    queue->clear();
  }
  struck_ = true;
}

}  // namespace leafcutter::node
