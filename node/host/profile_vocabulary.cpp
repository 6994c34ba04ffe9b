#include "node/host/profile_vocabulary.hpp"

#include <chrono>

#include "scenarios/json_schema.hpp"

namespace leafcutter::node::host {
namespace {

using scenarios::Form;
using scenarios::Shape;
using Kind = Form::Kind;

Form profile_text() { return {.kind = Kind::text, .least = 1}; }
Form profile_name() { return {.kind = Kind::name}; }
Form profile_number(std::uint64_t least, std::uint64_t most) {
  return {.kind = Kind::integer, .least = least, .most = most};
}
Form profile_word(std::string noun, std::vector<std::string> words) {
  return {.kind = Kind::word, .noun = std::move(noun), .words = std::move(words)};
}
Form profile_shape(std::string shape_name) { return {.kind = Kind::shape, .noun = std::move(shape_name)}; }
Form profile_list(Form element, std::uint64_t least = 1, std::uint64_t most = 1000) {
  return {.kind = Kind::list, .least = least, .most = most, .parts = {std::move(element)}};
}
Form profile_map(std::string shape_name) {
  return {.kind = Kind::map, .least = 1, .parts = {profile_shape(std::move(shape_name))}, .keys = Kind::name};
}
Form profile_span(std::chrono::nanoseconds most) {
  return {.kind = Kind::duration,
          .least = 1'000'000,
          .most = static_cast<std::uint64_t>(std::chrono::nanoseconds(most).count())};
}
Form absolute_path() {
  return {.kind = Kind::pattern,
          .noun = "an absolute path without \"..\"",
          .words = {
              "^/([^/.\\x00][^/\\x00]*|\\.[^/.\\x00][^/\\x00]*)?(/([^/.\\x00][^/\\x00]*|\\.[^/.\\x00][^/\\x00]*))*$"}};
}
Form digest_form() {
  return {.kind = Kind::pattern, .noun = "a SHA-256 digest (64 hexadecimal digits)", .words = {"^[0-9a-f]{64}$"}};
}
Form host_form() {
  return {.kind = Kind::pattern,
          .noun = "a host's name or address",
          .words = {"^[A-Za-z0-9]([A-Za-z0-9.:_-]{0,252})?$|^::1?$"}};
}
Form interface_form() {
  return {.kind = Kind::pattern,
          .noun = "the name of a network interface",
          .words = {"^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,14}$"}};
}

constexpr auto longest_action = std::chrono::hours(24);

Shape profile_document() {
  return {"profile",
          "The document",
          "What one node may do to its host. What is not in it is denied.",
          {{"profile", profile_number(1, 1), "the version of this language", true},
           {"name", profile_name(), "what logs call it", true},
           {"about", profile_text(), "a sentence for the reader"},
           {"features", profile_list(profile_word("scenario feature", feature_names()), 0),
            "what scenarios may use on this node", false, "[]"},
           {"tiers", profile_list(profile_word("fault tier", tier_names()), 0), "the tiers it may run", false, "[]"},
           {"pools", profile_list(profile_name(), 0), "the pools it takes work from", false, "[]"},
           {"at-once", profile_number(1, 64), "how many host actions at a time", false, "1"},
           {"management", profile_list(profile_number(1, 65535), 0),
            "TCP and UDP ports, either end's, that network shaping leaves alone", false, "[22]"},
           {"signal", profile_map("signal target"), "processes that may be signalled, by a name of your choice"},
           {"cpu", profile_shape("cpu pressure"), "processes that compute"},
           {"memory", profile_shape("memory pressure"), "a process that holds memory"},
           {"disk", profile_shape("disk pressure"), "a file that takes room"},
           {"network", profile_shape("network shaping"), "delay, loss and rate of whole interfaces"},
           {"probe", profile_map("probe"), "what may be looked at from this host, by a name of your choice"},
           {"configure", profile_map("configuration"), "files of which there are several variants"},
           {"services", profile_map("service"), "what can be restarted, and how it is brought back"},
           {"commands", profile_map("command"), "argument vectors that may be executed"}}};
}

std::vector<Shape> pressure_shapes() {
  return {{"signal target",
           "A process to signal",
           "Found by its pid file. It is not signalled when it was started after the file was written, or has another "
           "name.",
           {{"pid-file", absolute_path(), "where its number is", true},
            {"process", profile_text(), "its name, as `/proc/PID/comm` has it (15 bytes at most)", true},
            {"signals", profile_list(profile_word("signal", signal_names())), "which signals", true},
            {"service", profile_name(),
             "whose recovery brings it back; TERM, INT, QUIT, ABRT and KILL are denied without one"}}},
          {"cpu pressure",
           "CPU pressure",
           "",
           {{"for", profile_span(longest_action), "how long at most", true},
            {"workers", profile_number(1, 1024), "how many processes at most", true},
            {"nice", profile_number(0, 19), "their nice value", false, "0"}}},
          {"memory pressure",
           "Memory pressure",
           "The process that holds it is the first that the kernel would kill.",
           {{"for", profile_span(longest_action), "how long at most", true},
            {"megabytes", profile_number(1, 1'000'000), "how much at most", true},
            {"reserve", profile_number(0, 1'000'000), "megabytes that must stay available", false, "256"}}},
          {"disk pressure",
           "Disk pressure",
           "",
           {{"for", profile_span(longest_action), "how long at most", true},
            {"megabytes", profile_number(1, 10'000'000), "how much at most", true},
            {"folders", profile_list(absolute_path()), "where", true},
            {"reserve", profile_number(0, 10'000'000), "megabytes that must stay free", false, "64"}}},
          {"network shaping",
           "Network shaping",
           "By the kernel's traffic control. An interface whose root queue somebody else has set is left alone.",
           {{"for", profile_span(longest_action), "how long at most", true},
            {"interfaces", profile_list(interface_form()), "which", true},
            {"delay", profile_span(std::chrono::minutes(1)), "the most (netem)"},
            {"loss", profile_number(1, 100), "percent, the most (netem)"},
            {"slowest", profile_number(1, 100'000'000), "the least rate, in kbit/s (tbf)"}},
           {},
           {"delay", "loss", "slowest"}}};
}

std::vector<Shape> target_shapes() {
  return {
      {"probe",
       "A probe",
       "Exactly one of `http`, `tcp` and `dns`. It says which addresses of which family were tried.",
       {{"http", host_form(), "a host that is asked by GET; any 2xx answer is good"},
        {"tcp", host_form(), "a host that is connected to"},
        {"dns", host_form(), "a name server's address"},
        {"port", profile_number(1, 65535), "its port", true},
        {"path",
         {.kind = Kind::pattern, .noun = "a path that begins with /", .words = {"^/[!-~]*$"}},
         "what is asked for",
         false,
         "/",
         {"http"}},
        {"name", host_form(), "the name that is looked up", false, "", {"dns"}},
        {"within", profile_span(std::chrono::minutes(5)), "how long it may take", false, "5s"}},
       {"http", "tcp", "dns"}},
      {"configuration",
       "A configuration",
       "The file is replaced as a whole; what was there comes back.",
       {{"file", absolute_path(), "which file", true},
        {"variants",
         {.kind = Kind::map, .least = 1, .parts = {profile_shape("variant")}, .keys = Kind::name},
         "what it may become, by name",
         true},
        {"reload", profile_name(), "a command that is executed after either change"},
        {"for", profile_span(longest_action), "how long at most", true}}},
      {"variant",
       "A variant",
       "",
       {{"content", profile_text(), "a file that holds it, beside the profile or absolute", true},
        {"sha256", digest_form(), "of those bytes", true}}},
      {"service",
       "A service",
       "Commands with fixed arguments. `restart` is denied until `recover` has worked once in the session.",
       {{"restart", profile_name(), "the command that restarts it", true},
        {"recover", profile_name(), "the command that brings it back from any state", true},
        {"healthy", profile_name(), "the command that exits 0 when it is well", true},
        {"within", profile_span(std::chrono::hours(1)), "how long it may take until it is", false, "30s"}}},
      {"command",
       "A command",
       "Executed without a shell. Each element of the vector is compared by itself, and there can be no further one.",
       {{"program", absolute_path(), "what is executed", true},
        {"sha256", digest_form(), "of the program's bytes", false, "not looked at"},
        {"arguments",
         profile_list({.kind = Kind::either, .parts = {{.kind = Kind::text, .least = 0}, profile_shape("argument")}},
                      0),
         "its arguments in order: text, or what one may be", false, "[]"},
        {"environment",
         {.kind = Kind::map, .parts = {{.kind = Kind::text}}, .keys = Kind::variable},
         "its environment variables; there are no others",
         false,
         "{}"},
        {"folder", absolute_path(), "its working folder", false, "/"},
        {"within", profile_span(std::chrono::hours(1)), "killed after that", false, "30s"},
        {"at-once", profile_number(1, 64), "how many of it at a time", false, "1"}}},
      {"argument",
       "An argument",
       "Exactly one of `one-of`, `from` with `to`, and `matches`.",
       {{"one-of", profile_list({.kind = Kind::text, .least = 0}), "one of these texts"},
        {"from", profile_number(0, 9'223'372'036'854'775'807), "a whole number, from here"},
        {"to", profile_number(0, 9'223'372'036'854'775'807), "up to here", false, "", {"from"}},
        {"matches", {.kind = Kind::regex}, "a regular expression (RE2) that the whole element matches"}},
       {"one-of", "from", "matches"}}};
}

}  // namespace

const std::vector<std::string>& feature_names() {
  static const std::vector<std::string> names = {"network", "syscalls", "process", "dns", "egress"};
  return names;
}

const std::vector<std::string>& tier_names() {
  static const std::vector<std::string> names = {"process", "scheduled", "machine"};
  return names;
}

const std::vector<std::string>& signal_names() {
  static const std::vector<std::string> names = {"TERM", "INT", "QUIT", "ABRT", "KILL", "HUP", "USR1", "USR2", "STOP"};
  return names;
}

const scenarios::Vocabulary& profile_vocabulary() {
  static const auto all = [] {
    scenarios::Vocabulary made;
    made.places = scenarios::Vocabulary::Places::paths;
    made.shapes = {profile_document()};
    for (auto&& group : {pressure_shapes(), target_shapes()})
      made.shapes.insert(made.shapes.end(), group.begin(), group.end());
    return made;
  }();
  return all;
}

protocols::Value profile_json_schema() {
  auto schema = scenarios::document_schema(profile_vocabulary(), "");
  schema["$schema"] = scenarios::schema_dialect;
  schema["title"] = "Leafcutter host profile";
  schema["$defs"] = scenarios::definitions_schema(profile_vocabulary(), "");
  return schema;
}

std::string profile_reference_page() {
  return "# Host profile reference\n\nEvery key of a host profile. Generated from the table in `node/host/`, which the "
         "loader reads, too;\n[Host profile](host-profile.md) says what it is for.\n\n" +
         scenarios::shapes_page(profile_vocabulary());
}

}  // namespace leafcutter::node::host
