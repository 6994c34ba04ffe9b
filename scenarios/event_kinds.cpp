#include "scenarios/event_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

std::vector<EventKind> leaf_kinds() {
  return {
      {events::leaf_begin,
       "A leaf began.",
       "leaf",
       {{"address", "campaign/epoch/index"},
        {"execution", "which run of the leaf"},
        {"plan", "the faults planned for it", true},
        {"isolation", "what separates it from the host"}},
       false},
      {events::leaf_end,
       "A leaf ended.",
       "leaf",
       {{"cause", "completed, timeout or infra"},
        {"reason", "the reason code when it was cut short"},
        {"detail", "what was found"},
        {"dropped", "events that were lost"},
        {"log_lines_dropped", "lines beyond the limit of a leaf, if there were any"},
        {"egress_dropped",
         "refused attempts to leave it that became no event: beyond 64 destinations, if there were any"}},
       false},
      {events::sites,
       "How often each site was visited.",
       "leaf",
       {{"sites", "[[lane, operation, resource, count], ...]", true}},
       false},
      {events::fault_armed,
       "A planned fault is in place.",
       "leaf",
       {{"fault", "its index in the plan"},
        {"kind", "the fault kind"},
        {"site", "where it will strike", true},
        {"occurrence", "which visit of the site"}},
       false},
      {events::fault_fired,
       "A fault struck; on the lane that it struck.",
       "leaf",
       {{"fault", "its index in the plan"},
        {"kind", "the fault kind"},
        {"evidence", "the proof that it struck", true}}},
      {events::fault_undone,
       "A fault is over and nothing of it is left.",
       "leaf",
       {{"fault", "its index in the plan"}, {"how", "how it ended"}},
       false},
  };
}

std::vector<EventKind> service_kinds() {
  return {
      {events::start,
       "A service was started.",
       "service",
       {{"attempt", "1 at first, more after restarts"}, {"argv", "its argument vector", true}}},
      {events::ready,
       "A service showed that it is ready.",
       "service",
       {{"attempt", "which start"}, {"after_ms", "milliseconds since that start"}}},
      {events::exit,
       "A service ended.",
       "service",
       {{"attempt", "which start"},
        {"status", "its exit status, when it exited"},
        {"signal", "the signal that killed it, when one did"},
        {"injected", "whether a fault killed it"},
        {"lost", "with a power loss: what was gone", true},
        {"detail", "why it could not be executed"}}},
      {events::log,
       "A service wrote a line.",
       "service",
       {{"stream", "stdout or stderr"}, {"line", "the line, without its end"}}},
      {events::syscall,
       "A watched system call.",
       "service",
       {{"call", "the kernel's name of it"},
        {"family", "its syscall family"},
        {"resource", "the class of what it acts on"},
        {"path", "the file, when there is one"},
        {"n", "its occurrence at its site"},
        {"injected", "whether a fault struck it"},
        {"effect", "what a fault made of it"},
        {"errno", "the error it was answered with, by name"},
        {"detail", "why a fault that was planned here did not strike, or struck in part"}}},
      {events::unresolved,
       "It could not be found out what a watched system call acts on, so no fault struck it. Said at the 1st, 2nd, "
       "4th, "
       "8th, ... time for each call.",
       "service",
       {{"call", "the kernel's name of it"},
        {"family", "its syscall family"},
        {"n", "how often that was so"},
        {"why", "what could not be read"}}},
      {events::egress_refused,
       "A service, or a program of the workload, dialled or sent to an address outside of the leaf, and was refused. "
       "Said at the 1st, 2nd, 4th, 8th, ... time for each destination.",
       "service",
       {{"transport", "tcp or udp"},
        {"address", "where to, of IPv4 or IPv6; or the name of a host that others may reach, or at another port"},
        {"port", "its number"},
        {"n", "how often that was so"}}},
  };
}

std::vector<EventKind> link_kinds() {
  const std::vector<EventAttribute> ends = {
      {"from", "who dialled"}, {"to", "who was dialled"}, {"port", "the port's name"}, {"conn", "connection number"}};
  auto connect = ends;
  connect.push_back({"accepted", "whether somebody answered"});
  auto close = ends;
  close.insert(close.end(), {{"up_bytes", "bytes towards the dialled"},
                             {"down_bytes", "bytes back"},
                             {"cause", "who or what ended it"},
                             {"detail", "why the bytes of an HTTP port were not looked into, or why nobody answered"}});
  return {
      {events::connect, "A connection was opened.", "link", connect},
      {events::close, "A connection ended.", "link", close},
      {events::request,
       "A request reached a service; with what became of it.",
       "link",
       {{"from", "who asked"},
        {"to", "who was asked"},
        {"port", "the port's name"},
        {"method", "GET, POST, ..."},
        {"path", "the target without its query"},
        {"query", "what follows the question mark"},
        {"json", "the body, when it is JSON", true},
        {"body", "the body as text"},
        {"outcome", "replied, lost, reset, blackholed or no-reply"},
        {"started_ms", "when its head had arrived, since the leaf began"},
        {"reply.status", "the answer's status"},
        {"reply.json", "the answer's body, when it is JSON", true},
        {"reply.body", "the answer's body as text"},
        {"reply.delivered", "whether the answer reached who asked"}}},
      {events::reply,
       "An answer reached who had asked.",
       "link",
       {{"from", "who answers"},
        {"to", "who had asked"},
        {"port", "the port's name"},
        {"method", "the request's method"},
        {"path", "the request's target without its query"},
        {"status", "the status"},
        {"json", "the body, when it is JSON", true},
        {"body", "the body as text"},
        {"request.json", "the request's body, when it is JSON", true},
        {"request.body", "the request's body as text"}}},
  };
}

std::vector<EventKind> workload_kinds() {
  return {
      {events::step,
       "A step of the workload ended.",
       "workload",
       {{"label", "the step's name"},
        {"outcome", "replied, no-reply, skipped or failed"},
        {"status", "the answer's status"},
        {"json", "the answer's body, when it is JSON", true},
        {"detail", "what was found"},
        {"expected", "whether the step's own expectation held"}}},
      {events::settled,
       "A settle step ended.",
       "workload",
       {{"quiet_ms", "how long nothing moved"},
        {"ok", "whether that was long enough"},
        {"busy", "what still moved", true}}},
      {events::check,
       "A state check was carried out.",
       "workload",
       {{"property", "whose check it is"},
        {"ok", "whether it held"},
        {"exit", "the command's exit status"},
        {"stdout", "what the command wrote"},
        {"status", "the answer's status"},
        {"json", "the answer, when it is JSON", true},
        {"body", "the answer as text"},
        {"detail", "what was found"}},
       false},
  };
}

}  // namespace

const std::vector<EventKind>& event_kinds() {
  static const auto list = [] {
    std::vector<EventKind> all;
    for (auto&& group : {leaf_kinds(), service_kinds(), link_kinds(), workload_kinds()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return list;
}

const EventKind* event_kind(std::string_view name) {
  for (const auto& kind : event_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

bool has_attribute(const EventKind& kind, const std::vector<std::string>& path) {
  if (path.empty()) return false;
  if (path.size() == 1 && (path[0] == "lane" || (path[0] == "service" && kind.lane == "service"))) return true;
  std::string asked;
  for (const auto& part : path) asked += (asked.empty() ? "" : ".") + part;
  for (const auto& attribute : kind.attributes) {
    if (attribute.name == asked) return true;
    if (attribute.open && asked.starts_with(attribute.name + ".")) return true;  // below something of any shape
    if (attribute.name.starts_with(asked + ".")) return true;                    // a mapping that holds known names
  }
  return false;
}

std::vector<std::string> attribute_names(const EventKind& kind) {
  std::vector<std::string> names;
  if (kind.lane == "service") names.push_back("service");
  for (const auto& attribute : kind.attributes) names.push_back(attribute.name);
  names.push_back("lane");
  return names;
}

}  // namespace leafcutter::scenarios
