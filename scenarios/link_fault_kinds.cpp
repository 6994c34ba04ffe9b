// The rows of the table of fault kinds that strike links: what strikes a request or a connection as the link's proxy
// (node/links) sees it, and what strikes the bytes of a connection, which the network fault engine carries out.
#include "base/text.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

using Type = FaultParameter::Type;

constexpr std::uint64_t most_rate = 1'000'000'000'000, most_bytes = 1'000'000'000'000;

FaultParameter flow_parameter(const std::string& preset, bool of_stream = false) {
  return {.name = "flow",
          .type = Type::word,
          .required = false,
          .about = std::string(of_stream ? "of the connection: " : "") + "which way, " + preset + " when not given",
          .words = {"both", "to-service", "to-caller"},
          .of_stream = of_stream};
}

FaultParameter one_way_parameter() {
  return {.name = "flow",
          .type = Type::word,
          .required = false,
          .about = "which way, to-caller when not given",
          .words = {"to-service", "to-caller"}};
}

FaultParameter time_parameter(const std::string& name, bool required, const std::string& about,
                              bool of_stream = false) {
  return {.name = name, .type = Type::duration, .required = required, .about = about, .of_stream = of_stream};
}

FaultParameter bytes_parameter(const std::string& name, bool required, const std::string& about,
                               std::uint64_t least = 0) {
  return {.name = name, .type = Type::count, .required = required, .about = about, .least = least, .most = most_bytes};
}

FaultParameter ending_parameter() {
  return {.name = "ending",
          .type = Type::word,
          .required = false,
          .about = "an orderly close, or a reset; close when not given",
          .words = {"close", "reset"}};
}

std::chrono::nanoseconds given_time(const Value& params, const char* name) {
  const auto found = params.find(name);
  if (found == params.end() || !found->is_string()) return {};
  const auto time = base::parse_duration(found->get<std::string>());
  return time ? *time : std::chrono::nanoseconds{};
}

std::string latency_refusal(const Value& params) {
  const auto shape = params.value("distribution", "fixed");
  const bool wide = params.contains("spread"), tailed = params.contains("shape");
  const bool pareto = shape.starts_with("pareto");
  if ((shape == "uniform" || shape == "normal" || shape == "pareto-normal") && !wide)
    return "distribution \"" + shape + "\" needs \"spread\"";
  if ((shape == "fixed" || shape == "pareto") && wide)
    return "distribution \"" + shape + "\" has no \"spread\"; uniform and normal have";
  if (tailed && !pareto) return "\"shape\" goes with distribution \"pareto\" or \"pareto-normal\"";
  return {};
}

std::string jitter_refusal(const Value& params) {
  return params.contains("from") && given_time(params, "from") > given_time(params, "up-to")
             ? "\"from\" is longer than \"up-to\"; exchange them"
             : "";
}

std::string slice_refusal(const Value& params) {
  if (params.contains("variation") && params["variation"] >= params["bytes"])
    return "\"variation\" has to be less than \"bytes\"";
  return {};
}

/// What strikes a connection or a request as a whole.
std::vector<FaultKind> whole_kinds() {
  return {
      {.name = "refuse",
       .mechanism = Mechanism::link,
       .about = "The connection is refused: the caller's connect() fails with ECONNREFUSED.",
       .operations = {"connect"},
       .at_opening = true,
       .evidence = "connection number, 0 bytes forwarded, how the caller sees it",
       .undo = "at once: later connections are let through",
       .capability = "network-namespace",
       .complexity = 1},
      {.name = "reset",
       .mechanism = Mechanism::link,
       .about = "The connection is reset; the request it carries does not go through.",
       .operations = {"request", "connect"},
       .from_byte = true,
       .parameters = {{.name = "side",
                       .type = Type::word,
                       .required = false,
                       .about = "of the connection: which side is reset; the other one sees an orderly end",
                       .words = {"both", "caller", "service"},
                       .of_stream = true},
                      time_parameter("after", false,
                                     "of the connection: how long after it was opened, also when it is idle", true)},
       .evidence = "connection number, bytes seen",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 2},
      {.name = "blackhole",
       .mechanism = Mechanism::link,
       .about = "Nothing passes on the connection any more, in either direction, and nobody is told.",
       .operations = {"request", "connect", "session"},
       .datagrams = true,
       .from_byte = true,
       .parameters =
           {{.name = "mode",
             .type = Type::word,
             .required = false,
             .about =
                 "of the connection: stall stops reading, so that the sender feels it; drop reads and loses what comes",
             .words = {"stall", "drop"},
             .of_stream = true},
            flow_parameter("both", true)},
       .evidence = "bytes withheld",
       .undo = "when the caller closes the connection; with a mode or a flow: when both sides have closed it",
       .capability = "network-namespace",
       .complexity = 3},
      {.name = "latency",
       .mechanism = Mechanism::link,
       .about = "The request reaches the service later.",
       .operations = {"request", "connect", "session"},
       .datagrams = true,
       .from_byte = true,
       .parameters =
           {time_parameter("for", true, "how much later, from its arrival"),
            {.name = "distribution",
             .type = Type::word,
             .required = false,
             .about = "of the connection: how the time is drawn, fixed when not given. "
                      "`for` is the fixed time, the least (uniform, pareto) or the mean (normal)",
             .words = {"fixed", "uniform", "normal", "pareto", "pareto-normal"},
             .of_stream = true},
            time_parameter("spread", false,
                           "of the connection: what is beyond the least (uniform), or the deviation (normal)", true),
            {.name = "shape",
             .type = Type::decimal,
             .required = false,
             .about = "of the connection: of pareto; 2 when not given",
             .least = 100'000,
             .most = 100'000'000,
             .of_stream = true},
            time_parameter("at-most", false, "of the connection: a longer draw becomes this", true),
            {.name = "each",
             .type = Type::word,
             .required = false,
             .about =
                 "of the connection: what has a draw of its own, the connection (when not given) or every piece of it",
             .words = {"connection", "piece"},
             .of_stream = true},
            flow_parameter("both", true)},
       .refusal = latency_refusal,
       .evidence = "scheduled and actual delay",
       .undo = "when the request has been let go",
       .capability = "network-namespace",
       .complexity = 3},
      {.name = "lose-response",
       .mechanism = Mechanism::link,
       .about = "The request goes through and takes effect; its response is lost and the connection reset.",
       .operations = {"request"},
       .http_only = true,
       .evidence = "the response's status and length, the request forwarded",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 3},
  };
}

/// What the bytes of a connection meet on their way.
std::vector<FaultKind> byte_kinds() {
  return {
      {.name = "bandwidth",
       .mechanism = Mechanism::link,
       .about = "The bytes take the time that they need at a rate.",
       .operations = {"connect", "session"},
       .stream = true,
       .datagrams = true,
       .from_byte = true,
       .lasting = true,
       .parameters = {{.name = "bytes-per-second", .type = Type::count, .about = "the rate", .most = most_rate},
                      bytes_parameter("burst", false, "bytes that pass at once after idle time; 0 when not given"),
                      {.name = "scope",
                       .type = Type::word,
                       .required = false,
                       .about = "who has the rate: each connection for itself, or all of the link together; connection "
                                "when not given",
                       .words = {"connection", "link"}},
                      flow_parameter("both, each for itself,")},
       .evidence = "connection number, direction, offset and number of the first bytes that had to wait",
       .undo = "with the leaf",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "jitter",
       .mechanism = Mechanism::link,
       .about = "Every piece of the stream arrives later by another time, in order.",
       .operations = {"connect", "session"},
       .stream = true,
       .datagrams = true,
       .from_byte = true,
       .lasting = true,
       .parameters = {time_parameter("up-to", true, "the longest delay; every time up to it is as likely"),
                      time_parameter("from", false, "the shortest delay; none when not given"), flow_parameter("both")},
       .refusal = jitter_refusal,
       .evidence = "connection number, direction, offset and number of the first bytes, their delay",
       .undo = "with the leaf",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "slice",
       .mechanism = Mechanism::link,
       .about = "The stream arrives in small pieces, one by one.",
       .operations = {"connect"},
       .stream = true,
       .from_byte = true,
       .parameters = {bytes_parameter("bytes", true, "size of a piece", 1),
                      bytes_parameter("variation", false, "how much bigger or smaller a piece may be", 1),
                      time_parameter("pause", false, "between two pieces"), flow_parameter("both")},
       .refusal = slice_refusal,
       .evidence = "connection number, direction, offset and number of the first bytes that were cut up",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "limit",
       .mechanism = Mechanism::link,
       .about = "Exactly so many bytes get through, then this direction ends in order; the other one goes on.",
       .operations = {"connect"},
       .stream = true,
       .from_byte = true,
       .parameters = {bytes_parameter("bytes", true, "how many get through"), one_way_parameter()},
       .evidence = "connection number, direction, offset of the first byte that did not get through",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "truncate",
       .mechanism = Mechanism::link,
       .about = "The first bytes get through, the rest is lost, and the connection stays open.",
       .operations = {"connect", "session"},
       .stream = true,
       .datagrams = true,
       .from_byte = true,
       .parameters = {bytes_parameter("keep", true, "how many bytes get through"), one_way_parameter()},
       .evidence = "connection number, direction, offset and number of the first bytes that were lost",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "flip-bit",
       .mechanism = Mechanism::link,
       .about = "One bit of the stream arrives inverted.",
       .operations = {"connect", "session"},
       .stream = true,
       .datagrams = true,
       .parameters = {bytes_parameter("offset", true, "which byte of the stream, from 0"),
                      {.name = "bit",
                       .type = Type::count,
                       .required = false,
                       .about = "which bit of it, 0 to 7; 0 when not given",
                       .least = 0,
                       .most = 7},
                      one_way_parameter()},
       .evidence = "connection number, direction, the byte's offset",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
  };
}

/// How a connection begins and ends.
std::vector<FaultKind> connection_kinds() {
  return {
      {.name = "hang-connect",
       .mechanism = Mechanism::link,
       .about = "The connection is accepted, and nothing more happens.",
       .operations = {"connect"},
       .stream = true,
       .at_opening = true,
       .evidence = "connection number; the service is never dialled",
       .undo = "when the caller closes the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "slow-accept",
       .mechanism = Mechanism::link,
       .about = "The connection is accepted, and brought to the service only after a time.",
       .operations = {"connect"},
       .stream = true,
       .at_opening = true,
       .parameters = {time_parameter("for", true, "how much later the service is dialled")},
       .evidence = "connection number, the delay",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "reset-after-accept",
       .mechanism = Mechanism::link,
       .about = "The connection is accepted, then reset; the service hears nothing of it.",
       .operations = {"connect"},
       .stream = true,
       .at_opening = true,
       .parameters = {time_parameter("after", false, "how long after it was accepted; at once when not given")},
       .evidence = "connection number; the service is never dialled",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "slow-close",
       .mechanism = Mechanism::link,
       .about = "The end of the stream arrives later than its last byte.",
       .operations = {"connect"},
       .stream = true,
       .from_byte = true,
       .parameters = {time_parameter("for", true, "how much later"), flow_parameter("both")},
       .evidence = "connection number, direction, bytes before the end, the delay",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "half-open",
       .mechanism = Mechanism::link,
       .about = "One side's connection is gone, and the other side is told nothing: what it sends is lost.",
       .operations = {"connect"},
       .stream = true,
       .parameters = {{.name = "gone",
                       .type = Type::word,
                       .required = false,
                       .about = "who is gone, service when not given",
                       .words = {"service", "caller"}},
                      time_parameter("after", false,
                                     "how long after the connection was opened; at once when not given")},
       .evidence = "connection number",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "cut",
       .mechanism = Mechanism::link,
       .about = "The whole connection ends in the middle: after so many bytes of a direction, or after a time, "
                "whichever comes first.",
       .operations = {"connect"},
       .stream = true,
       .parameters = {bytes_parameter("after-bytes", false, "exactly so many bytes get through"),
                      time_parameter("after", false, "counted from its opening; traffic does not prolong it"),
                      ending_parameter(), one_way_parameter()},
       .some_of = {"after-bytes", "after"},
       .evidence = "connection number, direction and offset",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
      {.name = "lose-reply",
       .mechanism = Mechanism::link,
       .about = "What the caller sends goes through; at the first bytes of the answer the connection ends, and the "
                "answer is lost. For ports that speak no HTTP (there: lose-response).",
       .operations = {"connect"},
       .stream = true,
       .from_byte = true,
       .parameters = {ending_parameter()},
       .evidence = "connection number, bytes of the answer that were lost",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 4},
  };
}

FaultParameter nth_parameter() {
  return {.name = "nth",
          .type = Type::count,
          .required = false,
          .about = "only this datagram of the session, counted in each direction from 1; all when not given",
          .least = 1,
          .most = 1'000'000'000};
}

FaultParameter probability_parameter(const std::string& name, bool required, const std::string& about) {
  return {.name = name,
          .type = Type::decimal,
          .required = required,
          .about = about,
          .least = name == "probability" ? 1u : 0u,
          .most = 1'000'000};
}

/// A row of what exists on UDP alone.
FaultKind datagram_kind(const std::string& name, const std::string& about, std::vector<FaultParameter> parameters,
                        bool lasting) {
  parameters.push_back(flow_parameter("both"));
  return {.name = name,
          .mechanism = Mechanism::link,
          .about = about,
          .operations = {"session"},
          .stream = true,
          .connections = false,
          .datagrams = true,
          .lasting = lasting,
          .parameters = std::move(parameters),
          .evidence = "session number, direction, which datagram, its bytes",
          .undo = lasting ? "with the leaf" : "with the session, or the leaf",
          .capability = "network-namespace",
          .complexity = 4};
}

std::vector<FaultKind> datagram_kinds() {
  return {
      datagram_kind("lose-datagram", "One datagram of the session is lost.",
                    {{.name = "nth",
                      .type = Type::count,
                      .required = false,
                      .about = "which, counted in each direction from 1; 1 when not given",
                      .least = 1,
                      .most = 1'000'000'000}},
                    false),
      datagram_kind("loss", "Datagrams are lost, each with a probability, in this session and later ones.",
                    {probability_parameter("probability", true, "of each datagram")}, true),
      datagram_kind(
          "burst-loss",
          "Datagrams are lost in bursts (Gilbert-Elliott: a chain of a good and a bad state), in this session and "
          "later "
          "ones.",
          {probability_parameter("good-to-bad", true, "probability of a change, at each datagram"),
           probability_parameter("bad-to-good", true, "probability of a change back"),
           probability_parameter("loss-when-bad", false, "probability of loss in the bad state; 1 when not given"),
           probability_parameter("loss-when-good", false, "in the good one; 0 when not given")},
          true),
      datagram_kind("duplicate", "Datagrams arrive more than once.",
                    {{.name = "copies",
                      .type = Type::count,
                      .required = false,
                      .about = "beyond the original; 1 when not given",
                      .least = 1,
                      .most = 16},
                     probability_parameter("probability", false, "of each datagram; 1 when not given"),
                     nth_parameter()},
                    false),
      datagram_kind(
          "reorder", "Datagrams are overtaken by later ones.",
          {{.name = "gap",
            .type = Type::count,
            .required = false,
            .about = "by how many; 1 when not given",
            .least = 1,
            .most = 1024},
           time_parameter("at-most", false, "how long one is held back when no other follows; 100ms when not given"),
           probability_parameter("probability", false, "of each datagram; 1 when not given"),
           nth_parameter()},
          false),
  };
}

FaultKind partition_kind() {
  const auto side = [](const std::string& name, const std::string& about) {
    return FaultParameter{.name = name, .type = Type::names, .about = about};
  };
  const auto event = [](const std::string& name, const std::string& about) {
    return FaultParameter{.name = name, .type = Type::event, .required = false, .about = about};
  };
  return {
      .name = "partition",
      .mechanism = Mechanism::link,
      .about =
          "Nothing passes between two sets of services for a time: open connections stall and go on when it heals, "
          "new ones hang until then, datagrams are lost.",
      .operations = {"step", "connect"},
      .datagrams = true,
      .between = true,
      .parameters = {time_parameter("for", true, "how long; with `until`: at most"),
                     {.name = "flow",
                      .type = Type::word,
                      .required = false,
                      .about = "both ways (when not given), or only what the first set (`between`) sends to the second "
                               "(`and`), or only what that sends back; opening a connection needs both",
                      .words = {"both", "to-second", "to-first"}},
                     event("until", "the event that heals it"),
                     event("after", "the event after which it begins"),
                     {.name = "at",
                      .type = Type::word,
                      .required = false,
                      .about =
                          "where it begins: just before a step of the workload (when not given), or when a connection "
                          "is opened across",
                      .words = {"step", "connect"}},
                     side("between", "the first set: said by `on`"),
                     side("and", "the second set: said by `on`")},
      .evidence = "the links across, how many connections were open, what it met first",
      .undo = "when it has healed: every link is looked at; how much was held back is said",
      .capability = "network-namespace",
      .complexity = 4};
}

}  // namespace

std::string links_section() {
  return "\n## How faults strike a link\n\n"
         "- **Requests, where they can be told apart.** On a port with `protocol: http`, `reset`, `blackhole`, "
         "`latency` and "
         "`lose-response` strike a request, `refuse` a\n  connection; on a port with `protocol: tcp` each strikes a "
         "connection.\n"
         "- **Refused means refused.** The n-th connect() of the caller to the link fails with ECONNREFUSED, whatever "
         "it "
         "dials it by (name, IPv4, IPv6, localhost),\n  blocking or not, and no other one does; nothing reaches the "
         "link. Commands that a service or the workload runs count, too. For this the caller's connect() calls\n  are "
         "looked at (in leaves with such a fault alone); where a host does not allow that, the connection is accepted "
         "and then reset, and `seen_as` in the\n  evidence says so.\n"
         "- **The bytes of a connection, whatever they mean.** All other kinds, and those that are given a parameter "
         "\"of the connection\", strike a connection on any port:\n  the n-th that the caller opens, `bandwidth` and "
         "`jitter` that one and all "
         "later ones. Offsets count the bytes of one direction from 0.\n"
         "- **Both can meet.** Several faults of a connection's bytes apply one after the other in the plan's order; a "
         "refused connection meets "
         "none of them.\n"
         "- **The same plan draws the same.** Whatever is drawn (a latency, say) is a function of the fault, its link "
         "and the connection's number.\n"
         "- **Datagrams.** On a port with `protocol: udp` a session is what one socket of the caller sends and hears: "
         "faults "
         "strike the n-th session. `flip-bit` and\n  `truncate` strike each of its datagrams.\n"
         "- **Partitions** are between sets of services: `on: { between: [shop, cache], and: db }`. A connection that "
         "is open stalls "
         "and loses nothing; what is dialled gets no\n  answer, and the caller's kernel tries again after it has "
         "healed (it waits a "
         "second before it does); datagrams are lost. A partition that meets nothing did not\n  fire.\n"
         "- **A connection that is not struck pays nothing**: it does not pass through the engine that does this to "
         "bytes.\n"
         "- **Seen from HTTP.** Requests are read on the caller's side of these faults: a `request` event says what "
         "was asked, and the answer "
         "that it tells of is what arrived.\n";
}

std::vector<FaultKind> link_fault_kinds() {
  auto all = whole_kinds();
  for (auto&& rows : {byte_kinds(), connection_kinds(), datagram_kinds(), {partition_kind()}})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace leafcutter::scenarios
