// What is run: services, the links between them, the workload, the properties and the space to explore, as the loader
// hands it over. Plain values; everything in them has been checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::scenarios {

using protocols::Value;
using std::chrono::nanoseconds;

/// The one lane that is not a service: the steps of the workload.
inline constexpr const char* workload_lane = "workload";

enum class Protocol { tcp, http, udp };

struct Port {
  std::string name;
  std::uint16_t number = 0;
  Protocol protocol = Protocol::tcp;
};

/// How a service shows that it is ready.
struct Readiness {
  enum class By { started, tcp, http, log, command };
  By by = By::started;               ///< started: the process exists (no `ready` key)
  std::string port;                  ///< tcp, http: a port name of this service
  std::string path;                  ///< http: the target; any 2xx answer is ready
  std::string pattern;               ///< log: RE2, searched in each line of standard output and error
  std::vector<std::string> command;  ///< command: exit 0 is ready; run in the service's own namespaces
  nanoseconds within = std::chrono::seconds(10);
};

struct RestartPolicy {
  enum class On { never, crash, any_exit };
  On on = On::never;
  unsigned at_most = 3;
};

struct Service {
  std::string name;
  std::vector<std::string> run;  ///< argument vector, `${...}` not yet expanded; run[0] resolved against the scenario's
                                 ///< folder when it contains a slash
  std::vector<Port> ports;
  std::map<std::string, std::string> environment;
  std::string seed_data;  ///< folder copied into the fresh data folder, absolute; empty: an empty data folder
  std::vector<std::vector<std::string>> prepare;  ///< commands run once before the first start (initdb, ...)
  Readiness ready;
  RestartPolicy restart;
  std::vector<std::string> needs;  ///< services that must be ready before this one is started
  base::Place where;

  const Port* port(const std::string& port_name) const;
};

/// A directed pair: `from` (a service or "workload") dials a port of `to`. id() is also the link's lane.
struct Link {
  std::string from;
  std::string to;
  std::string port;
  Protocol protocol = Protocol::tcp;
  std::uint16_t number = 0;
  bool only_port = true;  ///< `to` has no other port, so the id needs no port name

  bool is_datagrams() const { return protocol == Protocol::udp; }
  std::string id() const;  ///< "shop -> broker", or "shop -> broker:admin" where `to` has several ports
};

/// Connections of `from` (a service or "workload") to a port of a host outside of the leaf, which are let through.
struct WayOut {
  std::string from;
  std::string to;  ///< a name in lower case, or an address in its usual form
  std::uint16_t port = 0;
  std::string at_host;  ///< where it really is; empty: where `to` and `port` say
  std::uint16_t at_port = 0;
  base::Place where;

  bool is_name() const;      ///< "localhost" is not one
  bool to_loopback() const;  ///< dialled on the caller's own loopback, reached on the host's
  std::string lane() const;  ///< "shop -> api.example.org:443"
};

/// A predicate over one event: its kind, matchers over attributes (all must hold) and a Lua expression.
struct Matcher {
  enum class Test { equals, status_class, range, regex, one_of, nested, exists };
  Test test = Test::equals;
  std::vector<std::string> path;            ///< attribute path: {"json", "id"}
  Value value;                              ///< equals, one_of (array), exists (bool)
  int status_class = 0;                     ///< status_class: 2 for "2xx"
  std::optional<double> at_least, at_most;  ///< range
  std::string regex;                        ///< RE2, searched
  std::vector<Matcher> nested;              ///< paths below `path`
};

struct Pattern {
  std::string event;  ///< an event kind
  std::vector<Matcher> matchers;
  std::vector<std::string> key;  ///< attribute path that gives the key; empty: none
  std::string where_lua;         ///< Lua expression over the event's attributes; empty: none
  std::string text;              ///< as the user wrote it, on one line
};

/// Command or request that reads state back after the workload has settled and every service is up again.
struct Check {
  std::vector<std::string> command;  ///< either a command (in the leaf, scenario folder as working directory) ...
  std::optional<int> exit;           ///< expected exit status (default 0)
  std::string http_service, http_port, http_path;  ///< ... or a GET, straight to the service (no link, no fault)
  std::vector<Matcher> reply;  ///< http: over {status, body, json}; command: over {exit, stdout, json}
  nanoseconds within = std::chrono::seconds(10);
};

struct Property {
  enum class Kind { always, never, eventually, count, check };
  std::string name;
  Kind kind = Kind::never;
  std::optional<Pattern> for_each;  ///< the antecedent; one obligation for each distinct key
  Pattern pattern;                  ///< always/never/eventually/count: what is looked for
  std::vector<Matcher> holds;       ///< always: what each event of `pattern` must satisfy
  std::string holds_lua;
  std::optional<nanoseconds>
      within;  ///< eventually: measured from the antecedent or the last (re)start, whichever is later
  std::optional<std::uint64_t> at_least, at_most;  ///< count, for each key
  Check check;
  base::Place where;
};

/// One step of the workload.
struct Step {
  enum class Do { request, exchange, command, repeat, parallel, settle };
  Do what = Do::request;
  std::string label;  ///< stable name: "post shop/orders", or the user's `name`
  // request
  std::string method, service, port, target;
  std::map<std::string, std::string> headers;
  std::optional<std::string> body;  ///< text after ${} expansion; JSON bodies are already dumped
  bool json_body = false;
  // exchange: raw bytes over TCP
  std::string send;   ///< with C escapes resolved
  std::string until;  ///< RE2: read until it matches; empty: read until the peer closes or `within`
  // command
  std::vector<std::string> command;
  // expectations over {status, json, body} / {reply} / {exit, stdout, json}; a reply that breaks one is a violation
  std::vector<Matcher> expect;
  bool reply_required = false;              ///< no reply at all is a violation too, also under faults
  std::map<std::string, std::string> save;  ///< variable -> Lua expression over the reply
  std::string when_lua;                     ///< skip unless true
  unsigned retries = 0;                     ///< request: again after no reply at all
  nanoseconds within = std::chrono::seconds(5);
  // repeat, parallel
  unsigned times = 1;
  std::string as;                           ///< loop variable, counts from 1
  std::vector<Step> steps;                  ///< repeat: the body
  std::vector<std::vector<Step>> branches;  ///< parallel
  // settle
  nanoseconds quiet = std::chrono::milliseconds(200);
  base::Place where;
};

/// Which faults the search may choose: `kind` at every site of `lane`.
struct FaultChoice {
  std::string kind;                ///< a name in fault_kinds.hpp
  std::string lane;                ///< service name or link id
  std::string operation;           ///< the site operation it strikes: a syscall family, "request", "connect", "step"
  std::string path_glob;           ///< syscalls: only resources that match; empty: all of the data folder
  Value params = Value::object();  ///< checked against the kind
};

struct Explore {
  std::vector<FaultChoice> faults;                          ///< in the order written, expanded
  std::vector<Fault> rules;                                 ///< in the order written, one for each lane; with an aim
  std::map<std::string, std::vector<std::string>> observe;  ///< service -> syscall families whose sites are watched
  unsigned at_once = 1;                                     ///< 1: singles, 2: singles and ordered pairs
  unsigned occurrences = 1;                                 ///< highest occurrence of a site that is struck
  std::uint64_t seed = 1;
  std::uint64_t max_leaves = 1000;
  nanoseconds max_time = std::chrono::minutes(10);
  nanoseconds leaf_timeout = std::chrono::seconds(30);
};

struct Scenario {
  int version = 1;
  std::string name, about;
  std::string file, folder;           ///< absolute
  std::string variant;                ///< empty: none
  std::vector<std::string> variants;  ///< declared by some service, sorted
  std::vector<Service> services;      ///< in an order that satisfies `needs`
  std::vector<Link> links;
  std::vector<WayOut> ways_out;  ///< in the order written
  std::vector<Step> workload;
  std::vector<Property> properties;
  Explore explore;
  std::string text;  ///< the document as read

  const Service* service(const std::string& service_name) const;
  const Link* link(const std::string& link_id) const;
};

}  // namespace leafcutter::scenarios
