// One request and its response on a link, and the events that tell of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/links/link_context.hpp"
#include "protocols/http.hpp"

namespace leafcutter::node {

enum class Outcome {
  replied,     ///< the whole response was brought to the caller
  lost,        ///< the callee responded; an injected fault withheld it
  reset,       ///< the connection was reset, by a fault or by the callee
  blackholed,  ///< an injected fault lets nothing pass any more
  no_reply,    ///< the callee ended without a response, or the caller left
};

struct Exchange {
  std::string method, path, query, label;
  std::chrono::nanoseconds started{0};
  VectorClock request_clock;  ///< what the caller had seen when it asked
  protocols::HttpMessage request;
  bool request_complete = false;
  bool waits_for_continue = false;  ///< the body is only sent once the callee has asked for it
  bool forwarded = false;           ///< no fault holds it back (any more)
  std::optional<std::size_t> lose;  ///< the fault that takes its response
  bool responding = false;          ///< the head of the final response has arrived
  std::optional<protocols::HttpMessage> response;
  VectorClock response_clock;      ///< what the callee had seen when it had responded
  std::uint64_t response_end = 0;  ///< where the response ends in what leaves towards the caller
};

/// Begins an exchange at a request whose head has arrived; it counts as under way from now on.
Exchange begin_exchange(LinkContext& context, const protocols::HttpMessage& head);

/// The exchange is over: records `request`, and `reply` when it was `replied`.
void end_exchange(LinkContext& context, Exchange& exchange, Outcome outcome);

}  // namespace leafcutter::node
