// Every kind of event with its attributes, defined once; patterns in scenarios are checked against this list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leafcutter::scenarios {

struct EventAttribute {
  std::string name;  ///< may be a path: "reply.status"
  std::string about;
  bool open = false;  ///< of any shape: a path may go on below it ("json.id")
};

struct EventKind {
  std::string name;
  std::string about;
  std::string lane;  ///< whose event it is: "service", "link", "workload" or "leaf"
  std::vector<EventAttribute> attributes;
  bool selectable = true;  ///< a property may speak of it
};

const std::vector<EventKind>& event_kinds();
const EventKind* event_kind(std::string_view name);

/// Can an event of this kind have something at `path`? Every kind has `lane`; kinds of services have `service`, the
/// same.
bool has_attribute(const EventKind& kind, const std::vector<std::string>& path);

/// Every attribute name of a kind, `lane` and `service` included, for messages.
std::vector<std::string> attribute_names(const EventKind& kind);

namespace events {
// --- the leaf itself (lane "leaf") ---
inline constexpr const char* leaf_begin = "leaf.begin";    ///< address, execution, plan, isolation
inline constexpr const char* leaf_end = "leaf.end";        ///< cause: completed|timeout|infra, reason, detail, dropped
inline constexpr const char* sites = "sites";              ///< sites: [[lane, operation, resource, count], ...]
inline constexpr const char* fault_armed = "fault.armed";  ///< fault (index), kind, site, occurrence
inline constexpr const char* fault_fired = "fault.fired";  ///< fault, kind, evidence {...}; on the lane it struck
inline constexpr const char* fault_undone = "fault.undone";  ///< fault, how
// --- services (lane: the service) ---
inline constexpr const char* start = "start";                    ///< attempt, argv
inline constexpr const char* ready = "ready";                    ///< attempt, after_ms
inline constexpr const char* exit = "exit";                      ///< attempt, status or signal, injected, lost
inline constexpr const char* log = "log";                        ///< stream, line
inline constexpr const char* syscall = "syscall";                ///< call, family, resource, path, n, injected
inline constexpr const char* unresolved = "unresolved";          ///< call, family, n, why
inline constexpr const char* egress_refused = "egress.refused";  ///< transport, address, port, n
// --- links (lane: the link's id) ---
inline constexpr const char* connect = "connect";  ///< from, to, port, conn, accepted
inline constexpr const char* close = "close";      ///< from, to, port, conn, up_bytes, down_bytes, cause
inline constexpr const char* request =
    "request";  ///< from, to, port, method, path, query, json, body, outcome, reply {status, json, body, delivered}
inline constexpr const char* reply =
    "reply";  ///< from (who answers), to (who asked), port, method, path, status, json, body, request {json, body}
// --- workload (lane "workload", or "workload/N" in a parallel branch) ---
inline constexpr const char* step =
    "step";  ///< label, outcome: replied|no-reply|skipped|failed, status, json, detail, expected (bool)
inline constexpr const char* settled = "settled";  ///< quiet_ms, ok, busy [names]
inline constexpr const char* check = "check";      ///< property, ok, exit, stdout, status, json, body, detail
}  // namespace events

}  // namespace leafcutter::scenarios
