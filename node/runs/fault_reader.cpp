#include "node/runs/fault_reader.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "node/runs/dns_effect.hpp"
#include "scenarios/loader/structure.hpp"
#include "scenarios/matcher_text.hpp"

namespace leafcutter::node::runs {
namespace {

using namespace proxy;
using scenarios::loading::Node;
using scenarios::loading::whole_number;

std::string word_of(const Node* node) { return node != nullptr && node->is_scalar() ? node->text : ""; }

std::uint64_t number_or(const Node& map, const char* name, std::uint64_t preset) {
  const auto* node = map.find(name);
  return node != nullptr ? whole_number(*node).value_or(preset) : preset;
}

/// What is none has been reported.
double probability_or_one(const Node& node) {
  const auto number = scenarios::number_in(node.text);
  return number && *number >= 0 && *number <= 1 ? *number : 1;
}

void read_ordinals(const Node* node, Ordinals& ordinals) {
  if (node == nullptr || !node->is_map()) return;
  // 0 has been reported.
  ordinals.first = std::max<std::uint64_t>(1, number_or(*node, "first", ordinals.first));
  ordinals.last = std::max<std::uint64_t>(1, number_or(*node, "last", ordinals.last));
  ordinals.every = std::max<std::uint64_t>(1, number_or(*node, "every", ordinals.every));
}

/// The kind, then "kind#2".
std::string free_id(const std::vector<Fault>& taken, const std::string& kind) {
  auto id = kind;
  const auto is_taken = [&] {
    return std::any_of(taken.begin(), taken.end(), [&](const Fault& one) { return one.id == id; });
  };
  for (int n = 2; is_taken(); ++n) id = kind + "#" + std::to_string(n);
  return id;
}

/// The parameters of the kind, without what every fault has, and without what is null.
Value parameters_in(const EffectKind& kind, const Node& node) {
  auto parameters = Value::object();
  for (const auto& parameter : kind.parameters) {
    const auto* value = node.find(parameter.key.name);
    if (value == nullptr || value->kind == Node::Kind::null) continue;
    auto& into = parameters[parameter.key.name] = scenarios::loading::to_value(*value);
    const auto& form = parameter.key.form;
    if (form.kind == scenarios::Form::Kind::text) into = value->text;
    if (form.kind != scenarios::Form::Kind::list || form.parts[0].kind != scenarios::Form::Kind::text) continue;
    for (std::size_t i = 0; i < value->items.size() && into.is_array(); ++i)
      if (value->items[i].is_scalar()) into[i] = value->items[i].text;
  }
  return parameters;
}

/// "a.b: rest" -> {"a.b", "rest"}; no path: {"", all}.
std::pair<std::string, std::string> split_complaint(const std::string& complaint) {
  const auto colon = complaint.find(": ");
  if (colon == std::string::npos || complaint.find(' ') < colon) return {"", complaint};
  return {complaint.substr(0, colon), complaint.substr(colon + 2)};
}

/// The node at "a.b", or the last one on the way that exists.
const Node& node_at(const Node& node, const std::string& path) {
  const auto dot = path.find('.');
  const auto* next = node.find(path.substr(0, dot));
  if (next == nullptr) return node;
  return dot == std::string::npos ? *next : node_at(*next, path.substr(dot + 1));
}

}  // namespace

std::vector<Fault> FaultReader::read(const Node* list, const std::string& path) {
  std::vector<Fault> faults;
  if (list == nullptr || !list->is_list()) return faults;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const auto& node = list->items[i];
    const auto place = path + "[" + std::to_string(i) + "]";
    const auto* kind = effect_kind(word_of(node.find("type")));
    if (kind == nullptr || kind->since > context_.schema_version || !on_transport(*kind, node, place)) continue;
    auto id = word_of(node.find("id"));
    if (id.empty()) id = free_id(faults, kind->name);
    if (std::any_of(faults.begin(), faults.end(), [&](const Fault& one) { return one.id == id; })) {
      notes_.error(*node.find("id"), place + ".id: \"" + id + "\" is taken in this list");
      continue;
    }
    auto made = kind->make != nullptr ? read_one(*kind, node, place, id) : read_dns(*kind, node, place, id);
    for (auto& fault : made) {
      if (const auto* after = node.find("after"); after != nullptr && after->is_map())
        waiting_.push_back({fault.id, after, place + ".after"});
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

/// None: it is wrong, which has been said.
std::vector<Fault> FaultReader::read_one(const EffectKind& kind, const Node& node, const std::string& path,
                                         const std::string& id) {
  auto parameters = parameters_in(kind, node);
  if (kind.has_probability) parameters.erase("probability");
  auto effect = effect_from(kind.name, parameters);
  if (!effect) {
    // A malformed value has been reported, with its place; what the effect says of it is not needed.
    if (const auto wrong = contradiction(parameters)) complain(node, path, *wrong);
    return {};
  }
  Fault fault;
  fault.effect = std::move(*effect);
  fault.id = id;
  const auto flow = word_of(node.find("flow"));
  fault.selector.flow = flow == "to-upstream" ? Flow::to_upstream : flow == "to-client" ? Flow::to_client : Flow::both;
  read_selector(node.find("select"), fault.selector);
  read_probability(kind, node, path, fault.selector);
  settle_first_version(kind, fault);
  if (!accepted(fault, node, path)) return {};
  return {std::move(fault)};
}

std::vector<Fault> FaultReader::read_dns(const EffectKind& kind, const Node& node, const std::string& path,
                                         const std::string& id) {
  const auto* select = node.find("select");
  if (select != nullptr && select->is_map())
    for (const auto& key : select->keys)
      if (key.text != "connections" && key.text != "peers") {
        notes_.error(key, path + ".select." + key.text +
                              ": dns has occurrences and a probability of its own; connections and peers can select");
        return {};
      }
  const auto parameters = parameters_in(kind, node);
  if (bad_parameters(kind, parameters)) {
    if (const auto wrong = contradiction(parameters)) complain(node, path, *wrong);
    return {};
  }
  auto faults = dns_faults_from(parameters, context_.schema_version, context_.transport, id);
  if (!faults) {
    complain(node, path, faults.error().message);
    return {};
  }
  for (auto& fault : *faults) {
    read_selector(select, fault.selector);
    if (!accepted(fault, node, path)) return {};
  }
  return std::move(*faults);
}

/// Whether the engine takes it. What it says otherwise is "faults[0] (latency) selector.bytes: ...".
bool FaultReader::accepted(const Fault& fault, const Node& node, const std::string& path) {
  FaultSet alone;
  alone.faults.push_back(fault);
  const auto good = checked(alone, context_.transport);
  if (good) return true;
  const auto& message = good.error().message;
  const auto at = message.find(") ");
  complain(node, path, at == std::string::npos ? message : message.substr(at + 2));
  return false;
}

bool FaultReader::on_transport(const EffectKind& kind, const Node& node, const std::string& path) {
  if (kind_exists_on(context_.transport, kind, context_.schema_version)) return true;
  const bool tcp = context_.transport == Transport::tcp;
  const bool later = context_.schema_version == 1 && kind_exists_on(context_.transport, kind, 2);
  notes_.error(*node.find("type"), path + ".type: " + kind.name + " does not exist on " + (tcp ? "tcp" : "udp") +
                                       (later ? " in schema_version 1; 2 has it"
                                              : std::string("; the proxy would have to be ") + (tcp ? "udp" : "tcp")));
  return false;
}

/// Where the first version means something else by the same words.
void FaultReader::settle_first_version(const EffectKind& kind, Fault& fault) const {
  if (context_.schema_version == 1)
    if (auto* latency = std::get_if<Latency>(&fault.effect); latency != nullptr && context_.transport == Transport::tcp)
      latency->draw = Latency::Draw::first_bytes;
  // In either version: what flows to the client is reset when it first flows, the rest also when nothing does.
  if (auto* reset = std::get_if<Reset>(&fault.effect);
      reset != nullptr && kind.name == "connection-reset" && fault.selector.flow == Flow::to_client)
    reset->when = Reset::When::first_bytes;
}

void FaultReader::read_selector(const Node* node, Selector& selector) const {
  if (node == nullptr || !node->is_map()) return;
  read_ordinals(node->find("connections"), selector.connections);
  read_ordinals(node->find("chunks"), selector.chunks);
  if (const auto* bytes = node->find("bytes"); bytes != nullptr && bytes->is_map()) {
    selector.bytes.from = number_or(*bytes, "from", selector.bytes.from);
    selector.bytes.until = number_or(*bytes, "until", selector.bytes.until);
  }
  if (const auto* peers = node->find("peers"); peers != nullptr && peers->is_list())
    for (const auto& peer : peers->items) selector.peers.push_back(peer.text);
  if (const auto* probability = node->find("probability")) selector.probability = probability_or_one(*probability);
  const auto draw = word_of(node->find("draw"));
  if (draw == "connection") selector.draw = Selector::Draw::connection;
  if (draw == "each-chunk") selector.draw = Selector::Draw::each_chunk;
}

void FaultReader::read_probability(const EffectKind& kind, const Node& node, const std::string& path,
                                   Selector& selector) {
  const auto* probability = node.find("probability");
  if (!kind.has_probability || probability == nullptr) return;
  const auto* select = node.find("select");
  if (select != nullptr && select->find("probability") != nullptr)
    notes_.error(*select->find("probability"), path + ".select.probability: " + kind.name +
                                                   " has a probability of its own, which says the same; leave one out");
  selector.probability = probability_or_one(*probability);
}

/// What the engine or the table of effects says of a fault, in the words and at the place of the document.
void FaultReader::complain(const Node& node, const std::string& path, const std::string& complaint) {
  auto [field, rest] = split_complaint(complaint);
  if (field == "selector.flow") field = "flow";
  if (field == "delay") field = node.find("distribution") != nullptr ? "distribution" : "delay_ms";
  if (field == "cap") field = "cap_ms";
  if (field.starts_with("selector")) field.replace(0, std::string("selector").size(), "select");
  notes_.error(node_at(node, field), path + (field.empty() ? "" : "." + field) + ": " + rest);
}

}  // namespace leafcutter::node::runs
