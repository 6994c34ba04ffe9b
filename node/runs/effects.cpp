#include "node/runs/effects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "node/runs/dns_effect.hpp"
#include "scenarios/loader/structure.hpp"

namespace leafcutter::node::runs {
namespace {

using namespace proxy;
using scenarios::Form;
using Kind = Form::Kind;

constexpr std::uint64_t whole_most = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t terabyte = std::uint64_t{1} << 40;

double longest_ms() { return std::chrono::duration<double, std::milli>(longest_fault_time).count(); }

// --- forms ---

Form number_form(double from, double to, bool above = false) {
  return {.kind = Kind::number, .from = from, .to = to, .above = above};
}
Form ms_form(bool above = false) { return number_form(0, longest_ms(), above); }
Form probability_form() { return number_form(0, 1); }
Form whole_form(std::uint64_t least = 0, std::uint64_t most = whole_most) {
  return {.kind = Kind::integer, .least = least, .most = most};
}
Form nullable(Form form) {
  form.nullable = true;
  return form;
}
Form boolean_form() { return {.kind = Kind::boolean}; }
Form words_form(std::string noun, std::vector<std::string> words) {
  return {.kind = Kind::word, .noun = std::move(noun), .words = std::move(words)};
}
Form ending_form() { return words_form("ending", {"close", "reset"}); }
Form shape_form(std::string name) { return {.kind = Kind::shape, .noun = std::move(name)}; }

const std::vector<std::string> distributions_of_first = {"uniform", "normal", "pareto", "pareto-normal"};

std::vector<std::string> distribution_names(int schema_version) {
  auto names = distributions_of_first;
  if (schema_version > 1) names.insert(names.begin(), "fixed");
  return names;
}

/// The later version's; `parameter_shapes` has the shapes of either.
Form distribution_form(int schema_version = 2) {
  Form form{.kind = Kind::tagged, .noun = "type", .words = distribution_names(schema_version)};
  for (const auto& name : form.words) form.parts.push_back(shape_form(name + " distribution"));
  return form;
}

scenarios::Key required(std::string name, Form form, std::string about) {
  return {std::move(name), std::move(form), std::move(about), true};
}
scenarios::Key optional(std::string name, Form form, std::string about, std::string preset = {}) {
  return {std::move(name), std::move(form), std::move(about), false, std::move(preset)};
}

// --- values ---

double real_in(const Value& of, const char* name, double preset = 0) { return of.value(name, preset); }
Duration ms_in(const Value& of, const char* name) { return milliseconds_of(real_in(of, name)); }
std::uint64_t whole_in(const Value& of, const char* name, std::uint64_t preset = 0) { return of.value(name, preset); }
std::string text_in(const Value& of, const char* name, const char* preset = "") {
  if (!of.contains(name)) return preset;
  return of[name].is_string() ? of[name].get<std::string>() : of[name].dump();
}
bool flag_in(const Value& of, const char* name) { return of.value(name, false); }

NormalTime normal_in(const Value& of, const char* mean, const char* deviation) {
  return {ms_in(of, mean), ms_in(of, deviation)};
}

Distribution distribution_of(const Value& of) {
  const auto type = text_in(of, "type");
  if (type == "uniform") return UniformTime{ms_in(of, "min_ms"), ms_in(of, "max_ms")};
  if (type == "normal") return normal_in(of, "mean_ms", "stddev_ms");
  if (type == "pareto") return ParetoTime{real_in(of, "shape"), ms_in(of, "scale_ms")};
  if (type == "pareto-normal")
    return ParetoNormalTime{{real_in(of, "pareto_shape"), ms_in(of, "pareto_scale_ms")},
                            normal_in(of, "normal_mean_ms", "normal_stddev_ms")};
  return FixedTime{ms_in(of, "delay_ms")};
}

Distribution distribution_in(const Value& parameters) { return distribution_of(parameters.at("distribution")); }

Side side_in(const Value& of, const char* name, const char* preset) {
  const auto side = text_in(of, name, preset);
  return side == "client" ? Side::client : side == "upstream" ? Side::upstream : Side::both;
}
Ending ending_in(const Value& of) { return text_in(of, "ending") == "reset" ? Ending::reset : Ending::close; }

Effect make_latency(const Value& of) {
  const auto draw = text_in(of, "draw");
  Latency latency{distribution_in(of)};
  latency.draw = draw == "connection"    ? Latency::Draw::connection
                 : draw == "first-bytes" ? Latency::Draw::first_bytes
                                         : Latency::Draw::each_chunk;
  if (of.contains("cap_ms")) latency.cap = ms_in(of, "cap_ms");
  return latency;
}

Effect make_bandwidth(const Value& of) {
  Bandwidth bandwidth;
  const auto scope = text_in(of, "scope");
  bandwidth.bytes_per_second = whole_in(of, "bytes_per_second");
  bandwidth.burst_bytes = whole_in(of, "burst_bytes");
  bandwidth.scope = scope == "link"     ? Bandwidth::Scope::link
                    : scope == "shared" ? Bandwidth::Scope::shared
                                        : Bandwidth::Scope::connection;
  bandwidth.bucket = text_in(of, "bucket");
  bandwidth.queue_bytes = whole_in(of, "queue_bytes", bandwidth.queue_bytes);
  return bandwidth;
}

Effect make_corrupt(const Value& of) {
  Corrupt corrupt;
  corrupt.random_bits = static_cast<unsigned>(whole_in(of, "random_bits", 1));
  for (const auto& flip : of.value("flips", Value::array()))
    corrupt.flips.push_back({whole_in(flip, "offset"), static_cast<std::uint8_t>(whole_in(flip, "mask", 1))});
  return corrupt;
}

Effect make_cut(const Value& of) {
  Cut cut;
  if (of.contains("after_ms")) cut.after = ms_in(of, "after_ms");
  if (of.contains("after_bytes")) cut.after_bytes = whole_in(of, "after_bytes");
  cut.ending = ending_in(of);
  return cut;
}

Effect make_reset(const Value& of) {
  return Reset{side_in(of, "side", "both"), ms_in(of, "after_ms"),
               text_in(of, "when") == "first-bytes" ? Reset::When::first_bytes : Reset::When::at_once};
}

Effect make_blackhole(const Value& of) {
  return Blackhole{text_in(of, "mode") == "drop" ? Blackhole::Mode::drop : Blackhole::Mode::stall,
                   flag_in(of, "close_when_removed")};
}

Effect make_burst_loss(const Value& of) {
  return BurstLoss{real_in(of, "good_to_bad"), real_in(of, "bad_to_good", 1), real_in(of, "loss_when_good"),
                   real_in(of, "loss_when_bad", 1)};
}

Effect make_slice(const Value& of) {
  return Slice{static_cast<std::size_t>(whole_in(of, "average_bytes", 64)),
               static_cast<std::size_t>(whole_in(of, "variation_bytes")), ms_in(of, "pause_ms")};
}

Effect make_reorder(const Value& of) {
  return Reorder{static_cast<unsigned>(whole_in(of, "gap", 1)), milliseconds_of(real_in(of, "at_most_ms", 100))};
}

// --- the table ---

std::vector<EffectKind> kinds_of_first_version() {
  return {
      {"latency",
       "Bytes leave that much later than they arrived; delays overlap and order is kept. In schema_version 1 a TCP "
       "stream is delayed once, at its first bytes.",
       {{required("distribution", distribution_form(), "what is drawn"), 1},
        {optional("draw", words_form("way to draw", {"each-chunk", "connection", "first-bytes"}),
                  "anew for every chunk and datagram, once for a connection, or once and for its first bytes only",
                  "each-chunk")},
        {optional("cap_ms", ms_form(), "a longer draw becomes this")}},
       make_latency,
       1,
       Latency{}},
      {"jitter",
       "Chunks and datagrams are delayed with that probability, each by a draw of its own.",
       {{required("min_delay_ms", ms_form(), "the least"), 1},
        {required("max_delay_ms", ms_form(), "the most, included"), 1},
        {required("probability", probability_form(), "of each chunk or datagram"), 1}},
       [](const Value& of) -> Effect {
         return Jitter{ms_in(of, "min_delay_ms"), ms_in(of, "max_delay_ms")};
       },
       1,
       Jitter{},
       {},
       true},
      {"bandwidth",
       "Bytes leave at that rate.",
       {{required("bytes_per_second", whole_form(1, terabyte), "the rate"), 1},
        {optional("burst_bytes", whole_form(0, terabyte), "pass at once after idle time", "0")},
        {optional(
            "scope", words_form("scope", {"connection", "link", "shared"}),
            "who has the rate: each connection and direction, all of the proxy, or every fault of the same bucket",
            "connection")},
        {optional("bucket", {.kind = Kind::text, .least = 1}, "what shares the rate, with `scope: shared`")},
        {optional("queue_bytes", whole_form(1, terabyte), "UDP: what does not fit is dropped", "262144")}},
       make_bandwidth,
       1,
       Bandwidth{},
       Transport::tcp},
      {"blackhole",
       "Nothing gets through, on open connections too.",
       {{optional(
            "mode", words_form("mode", {"stall", "drop"}),
            "TCP: reading stops, and what was sent arrives when the fault goes; or it is read and lost. UDP drops",
            "stall")},
        {optional("close_when_removed", boolean_form(), "end the connection when the fault goes", "false")}},
       make_blackhole,
       1,
       Blackhole{}},
      {"connection-reset",
       "The client's connection is reset, also when it is idle; the upstream sees an orderly end.",
       {{required("probability", probability_form(), "of each connection"), 1}},
       [](const Value&) -> Effect { return Reset{Side::client}; },
       1,
       Reset{},
       {},
       true},
      {"dns",
       "Answers of name servers: late, missing, cut short, refused, failed, empty or wrong. UDP, and TCP from version "
       "2 on.",
       {{required("case", words_form("case", dns_case_words(2)), "what becomes of a question"), 1},
        {optional("delay_ms", nullable(whole_form(0, static_cast<std::uint64_t>(longest_ms()))),
                  "how much later, in every case; `delay` needs it, or a distribution"),
         1},
        {optional("distribution", distribution_form(), "how much later, drawn for each question")},
        {optional("cap_ms", ms_form(), "a longer draw becomes this")},
        {optional("name", {.kind = Kind::text, .least = 1}, "which names: one, `*.internal` (all below it), or all",
                  "`*`")},
        {optional("types", {.kind = Kind::list, .least = 1, .most = 100, .parts = {{.kind = Kind::text, .least = 1}}},
                  "of the question: `A`, `AAAA`, `TYPE65`", "all")},
        {optional("occurrences", shape_form("ordinals"), "of the questions of that name and type on this proxy",
                  "all")},
        {optional("probability", probability_form(), "of each of them", "1")},
        {optional("addresses",
                  {.kind = Kind::list, .least = 1, .most = 1000, .parts = {{.kind = Kind::text, .least = 1}}},
                  "the answers of `wrong-answers`: IPv4 for A, IPv6 for AAAA")},
        {optional("ttl", whole_form(0, 0x7fffffff), "seconds, of what is made up; what `ttl` writes", "30")},
        {optional("zone", {.kind = Kind::text, .least = 1}, "owner of the SOA record of negative answers",
                  "the parent of the name")},
        {optional("on_reply", boolean_form(), "the resolver is asked, and its answer is changed", "false")}},
       nullptr,
       1,
       Filter{},
       Transport::udp},
  };
}

std::vector<EffectKind> tcp_kinds() {
  const auto after = [](const char* about) { return optional("after_ms", ms_form(), about, "0"); };
  return {
      {"reset",
       "RST to one side or both; the other side of a one-sided reset gets an orderly end.",
       {{optional("side", words_form("side", {"client", "upstream", "both"}), "who is reset", "both")},
        {after("from activation or accepting, or from the first bytes")},
        {optional("when", words_form("time", {"at-once", "first-bytes"}),
                  "also on an idle connection, or at the first bytes of the direction, which are lost", "at-once")}},
       make_reset,
       2,
       Reset{}},
      {"half-open",
       "One side's connection vanishes and the other side is told nothing.",
       {{optional("gone", words_form("side", {"client", "upstream"}), "who vanishes", "upstream")},
        {after("from activation or accepting")}},
       [](const Value& of) -> Effect {
         return HalfOpen{side_in(of, "gone", "upstream"), ms_in(of, "after_ms")};
       },
       2,
       HalfOpen{}},
      {"refuse",
       "Connections are refused; for selected ones: reset right after they were accepted.",
       {},
       [](const Value&) -> Effect { return Refuse{}; },
       2,
       Refuse{}},
      {"hang-connect",
       "The connection is accepted, and nothing happens until the fault is removed.",
       {},
       [](const Value&) -> Effect { return HangConnect{}; },
       2,
       HangConnect{}},
      {"slow-accept",
       "The connection is accepted, and brought to the upstream only later.",
       {{required("distribution", distribution_form(), "how much later")}},
       [](const Value& of) -> Effect { return SlowAccept{distribution_in(of)}; },
       2,
       SlowAccept{}},
      {"reset-after-accept",
       "RST after the connection was accepted; the upstream hears nothing of it.",
       {{after("how long after")}},
       [](const Value& of) -> Effect { return ResetAfterAccept{ms_in(of, "after_ms")}; },
       2,
       ResetAfterAccept{}},
      {"slow-close",
       "The end of the stream is passed on later.",
       {{required("delay_ms", ms_form(), "how much later")}},
       [](const Value& of) -> Effect { return SlowClose{ms_in(of, "delay_ms")}; },
       2,
       SlowClose{}},
      {"cut",
       "The whole connection ends after a time or after exactly so many bytes of the direction, whichever comes first.",
       {{optional("after_ms", ms_form(), "from activation or accepting; traffic does not re-arm it")},
        {optional("after_bytes", whole_form(), "that got through")},
        {optional("ending", ending_form(), "FIN or RST", "close")}},
       make_cut,
       2,
       Cut{},
       {},
       false,
       {"after_ms", "after_bytes"}},
      {"limit",
       "Exactly so many bytes get through, then this direction ends; the other one goes on.",
       {{required("bytes", whole_form(), "how many")}},
       [](const Value& of) -> Effect { return Limit{whole_in(of, "bytes")}; },
       2,
       Limit{}},
      {"slice",
       "Chunks are cut into pieces that are sent one by one.",
       {{optional("average_bytes", whole_form(1, terabyte), "of a piece", "64")},
        {optional("variation_bytes", whole_form(0, terabyte), "more or less", "0")},
        {optional("pause_ms", ms_form(), "between pieces", "0")}},
       make_slice,
       2,
       Slice{}},
      {"lose-reply",
       "The request goes through and the answer does not: both sides are ended at its first bytes.",
       {{optional("ending", ending_form(), "FIN or RST", "close")}},
       [](const Value& of) -> Effect { return LoseReply{ending_in(of)}; },
       2,
       LoseReply{}},
  };
}

std::vector<EffectKind> other_kinds() {
  Form flips{.kind = Kind::list, .least = 1, .most = 1000, .parts = {shape_form("flip")}};
  return {
      {"corrupt",
       "Bits are inverted; sizes stay.",
       {{optional("flips", std::move(flips), "which bits, at offsets of the stream or of every datagram")},
        {optional("random_bits", whole_form(1, 1024), "without flips: so many anywhere in a chunk or datagram", "1")}},
       make_corrupt,
       2,
       Corrupt{}},
      {"truncate",
       "TCP: the first bytes get through and the rest is lost, with the connection open. UDP: datagrams are cut.",
       {{required("keep_bytes", whole_form(), "how many stay")}},
       [](const Value& of) -> Effect { return Truncate{whole_in(of, "keep_bytes")}; },
       2,
       Truncate{}},
      {"loss",
       "Datagrams are lost, each for itself.",
       {{optional("probability", probability_form(), "of each datagram", "1")}},
       [](const Value& of) -> Effect { return Loss{real_in(of, "probability", 1)}; },
       2,
       Loss{}},
      {"burst-loss",
       "Datagrams are lost in bursts (Gilbert-Elliott: two states, stepped once a datagram).",
       {{required("good_to_bad", probability_form(), "probability that a burst begins")},
        {optional("bad_to_good", probability_form(), "probability that it ends", "1")},
        {optional("loss_when_good", probability_form(), "probability of a loss outside bursts", "0")},
        {optional("loss_when_bad", probability_form(), "probability of a loss within", "1")}},
       make_burst_loss,
       2,
       BurstLoss{}},
      {"duplicate",
       "Datagrams come more than once.",
       {{optional("copies", whole_form(1, 16), "beyond the original", "1")}},
       [](const Value& of) -> Effect { return Duplicate{static_cast<unsigned>(whole_in(of, "copies", 1))}; },
       2,
       Duplicate{}},
      {"reorder",
       "A datagram is held back until later ones have passed it.",
       {{optional("gap", whole_form(1, 1024), "how many pass it", "1")},
        {optional("at_most_ms", ms_form(), "how long it is held at most", "100")}},
       make_reorder,
       2,
       Reorder{}},
  };
}

scenarios::Shape distribution_shape(const std::string& name, std::string about, std::vector<scenarios::Key> keys) {
  keys.insert(keys.begin(), required("type", words_form("type", {name}), "which distribution"));
  return {name + " distribution", "The " + name + " distribution", std::move(about), std::move(keys)};
}

/// A vocabulary with one shape, the parameters of a kind.
scenarios::Vocabulary parameters_of(const EffectKind& kind) {
  scenarios::Vocabulary made;
  made.places = scenarios::Vocabulary::Places::paths;
  scenarios::Shape shape{kind.name, kind.name, kind.about, {}, {}, kind.some_of};
  for (const auto& parameter : kind.parameters) {
    shape.keys.push_back(parameter.key);
    if (kind.has_probability && parameter.key.name == "probability") shape.keys.back().required = false;
  }
  made.shapes.push_back(std::move(shape));
  for (auto& one : parameter_shapes(2)) made.shapes.push_back(std::move(one));
  return made;
}

scenarios::loading::Node node_of(const Value& value) {
  scenarios::loading::Node node;
  if (value.is_object()) {
    node.kind = scenarios::loading::Node::Kind::map;
    for (const auto& [name, item] : value.items()) {
      node.keys.push_back(node_of(name));
      node.items.push_back(node_of(item));
    }
  } else if (value.is_array()) {
    node.kind = scenarios::loading::Node::Kind::list;
    for (const auto& item : value) node.items.push_back(node_of(item));
  } else if (!value.is_null()) {
    node.kind = scenarios::loading::Node::Kind::scalar;
    node.plain = !value.is_string();
    node.text = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return node;
}

}  // namespace

const std::vector<EffectKind>& effect_kinds() {
  static const auto all = [] {
    auto kinds = kinds_of_first_version();
    for (auto&& group : {other_kinds(), tcp_kinds()}) kinds.insert(kinds.end(), group.begin(), group.end());
    return kinds;
  }();
  return all;
}

const EffectKind* effect_kind(std::string_view name) {
  const auto& all = effect_kinds();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& kind) { return kind.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool kind_exists_on(Transport transport, const EffectKind& kind, int schema_version) {
  if (schema_version == 1 && kind.only_in_first) return transport == *kind.only_in_first;
  return exists_on(transport, kind.sample);
}

std::vector<scenarios::Shape> parameter_shapes(int schema_version) {
  std::vector<scenarios::Shape> shapes = {
      distribution_shape("uniform", "Every value is as likely; both ends are included.",
                         {required("min_ms", ms_form(), "the least"), required("max_ms", ms_form(), "the most")}),
      distribution_shape(
          "normal", "Truncated at 0: a negative draw is drawn again.",
          {required("mean_ms", ms_form(), "the mean"), required("stddev_ms", ms_form(true), "the standard deviation")}),
      distribution_shape("pareto", "Rarely very long: mind `cap_ms`. With a shape of 1 or less the mean is infinite.",
                         {required("shape", number_form(0, 1e6, true), "the smaller, the longer the tail"),
                          required("scale_ms", ms_form(true), "the least")}),
      distribution_shape("pareto-normal", "The sum of a Pareto draw and a normal one.",
                         {required("pareto_shape", number_form(0, 1e6, true), "the smaller, the longer the tail"),
                          required("pareto_scale_ms", ms_form(true), "the least of the Pareto draw"),
                          required("normal_mean_ms", ms_form(), "the mean of the normal draw"),
                          required("normal_stddev_ms", ms_form(true), "its standard deviation")})};
  if (schema_version == 1) return shapes;
  shapes.insert(shapes.begin(),
                distribution_shape("fixed", "Always the same.", {required("delay_ms", ms_form(), "how much")}));
  shapes.push_back(
      {"ordinals",
       "Ordinals",
       "Numbers from 1: `first`, `first + every`, and so on up to `last`.",
       {optional("first", whole_form(1), "the first", "1"), optional("last", whole_form(1), "the last", "no end"),
        optional("every", whole_form(1), "the distance", "1")}});
  shapes.push_back({"flip",
                    "A flip",
                    "",
                    {required("offset", whole_form(), "of the byte"),
                     optional("mask", whole_form(1, 255), "the bits of it that are inverted", "1")}});
  return shapes;
}

base::Expected<Effect> effect_from(std::string_view kind, const Value& parameters) {
  const auto* known = effect_kind(kind);
  const auto bad = [](std::string message) { return base::Error{base::ErrorCode::bad_input, std::move(message)}; };
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const auto& one : effect_kinds()) names.push_back(one.name);
    const auto near = base::nearest(kind, names);
    return bad("unknown kind of fault \"" + std::string(kind) + "\"" +
               (near ? "; did you mean \"" + *near + "\"?" : "; known: " + base::join_names(names)));
  }
  const auto given = parameters.is_null() ? Value(Value::object()) : parameters;
  if (auto wrong = bad_parameters(*known, given)) return *wrong;
  if (known->make == nullptr) return bad(known->name + ": its effect depends on the link that it is put on");
  return known->make(given);
}

std::optional<base::Error> bad_parameters(const EffectKind& kind, const Value& parameters) {
  scenarios::loading::Notes notes("");
  scenarios::loading::check_against(parameters_of(kind), kind.name, node_of(parameters), kind.name, notes);
  if (notes.any_error()) return base::Error{base::ErrorCode::bad_input, notes.errors().front().message};
  if (const auto wrong = contradiction(parameters))
    return base::Error{base::ErrorCode::bad_input, kind.name + "." + *wrong};
  return std::nullopt;
}

Distribution distribution_from(const Value& of) { return distribution_of(of); }

std::optional<std::string> contradiction(const Value& parameters) {
  const auto greater = [](const Value& of, const char* low, const char* high) -> std::optional<std::string> {
    if (!of.is_object() || !of.contains(low) || !of.contains(high)) return {};
    if (!of[low].is_number() || !of[high].is_number() || of[low].get<double>() <= of[high].get<double>()) return {};
    return std::string(low) + ": " + of[low].dump() + " is greater than " + high + ", " + of[high].dump() +
           "; exchange them";
  };
  if (auto wrong = greater(parameters, "min_delay_ms", "max_delay_ms")) return wrong;
  if (parameters.contains("distribution") && parameters.contains("delay_ms"))
    return "delay_ms: there is a distribution, too; leave one out";
  if (parameters.contains("distribution"))
    if (auto wrong = greater(parameters["distribution"], "min_ms", "max_ms")) return "distribution." + *wrong;
  return {};
}

Duration milliseconds_of(double value) { return Duration(static_cast<Duration::rep>(std::llround(value * 1e6))); }

}  // namespace leafcutter::node::runs
