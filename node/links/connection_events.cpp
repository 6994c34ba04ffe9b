#include "node/links/connection_events.hpp"

#include <utility>

#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

Value ends_of(const scenarios::Link& link, std::uint64_t connection) {
  return {{"from", link.from}, {"to", link.to}, {"port", link.port}, {"conn", connection}};
}

}  // namespace

void record_opening(Recorder& recorder, const scenarios::Link& link, const std::string& lane, std::uint64_t connection,
                    bool accepted) {
  auto attrs = ends_of(link, connection);
  attrs["accepted"] = accepted;
  recorder.record(lane, scenarios::events::connect, std::move(attrs), {recorder.now(link.from)});
}

void record_end(Recorder& recorder, const scenarios::Link& link, const std::string& lane, const ConnectionEnd& end) {
  auto attrs = ends_of(link, end.connection);
  attrs["up_bytes"] = end.up_bytes;
  attrs["down_bytes"] = end.down_bytes;
  attrs["cause"] = end.cause;
  if (!end.detail.empty()) attrs["detail"] = end.detail;
  recorder.record(lane, scenarios::events::close, std::move(attrs));
}

}  // namespace leafcutter::node
