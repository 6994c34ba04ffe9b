#include "node/proxy/event.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr std::string_view event_names[] = {
    "link-added",     "link-removed", "faults-replaced", "listening-failed", "accept-failed",
    "accept-resumed", "accepted",     "connected",       "connect-failed",   "struck",
    "passed-over",    "discarded",    "let-through",     "closed",
};
static_assert(std::size(event_names) == static_cast<std::size_t>(EventKind::closed) + 1);

constexpr std::string_view cause_names[] = {
    "none",        "finished",   "client-reset", "upstream-reset", "fault",       "refused", "timed-out",
    "unreachable", "unresolved", "scarce",       "idle",           "client-left", "removed", "failed",
};
static_assert(std::size(cause_names) == static_cast<std::size_t>(Cause::failed) + 1);

}  // namespace

std::string_view name_of(EventKind kind) { return event_names[static_cast<std::size_t>(kind)]; }
std::string_view name_of(Cause cause) { return cause_names[static_cast<std::size_t>(cause)]; }

}  // namespace leafcutter::node::proxy
