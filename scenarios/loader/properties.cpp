// Properties: what must hold over the trace or over state read back.
#include <algorithm>

#include "scenarios/loader/loading.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios::loading {
namespace {

Check load_check(Loading& loading, const Node& node) {
  Check check;
  check.within = duration_of(node.find("within"), check.within);
  const std::vector<std::string> own = {"run", "exit", "get", "within"};
  if (const auto* run = node.find("run"); run != nullptr) {
    check.command = load_command(loading, run, {});
    check.exit = static_cast<int>(number_of(node.find("exit"), 0));
    check.reply = load_matchers(loading, node, answer_kind("command"), own);
  } else if (const auto* get = node.find("get"); get != nullptr) {
    check_references(loading, *get, text_of(get), {});
    const auto target = resolve_target(loading, *get, true);
    check.http_service = target.service;
    check.http_port = target.port;
    check.http_path = target.path;
    check.reply = load_matchers(loading, node, answer_kind("request"), own);
    if (node.find("status") == nullptr) {
      Matcher any_success;
      any_success.test = Matcher::Test::status_class;
      any_success.path = {"status"};
      any_success.status_class = 2;
      check.reply.push_back(any_success);
    }
  }
  return check;
}

void check_keys(Loading& loading, const Node& node, const Node& pattern, const Property& property) {
  const auto* for_each = node.find("for-each");
  if (!property.for_each || for_each == nullptr || !for_each->is_map()) return;
  const bool from = !property.for_each->key.empty();
  const bool to = !property.pattern.key.empty();
  if (to && !from)
    loading.notes.error(*for_each, "\"for-each\" has no \"key\", but the events that it asks for have one (\"" +
                                       text_of(pattern.find("key")) + "\"): nothing links them");
  if (from && !to)
    loading.notes.error(pattern, "this pattern has no \"key\", but \"for-each\" has one (\"" +
                                     text_of(for_each->find("key")) + "\"): nothing links them");
}

void load_always(Loading& loading, const Node& node, const Node& at, Property& property) {
  const auto* holds = node.find("holds");
  property.holds_lua = text_of(node.find("holds-lua"));
  if (holds == nullptr && node.find("holds-lua") == nullptr)
    loading.notes.error(at, "\"always\" says of which events, but not what: add \"holds\" or \"holds-lua\"");
  if (const auto* kind = event_kind(property.pattern.event); kind != nullptr && holds != nullptr && holds->is_map())
    property.holds = load_matchers(loading, *holds, *kind);
}

void load_count(Loading& loading, const Node& node, const Node& at, Property& property) {
  const auto* least = node.find("at-least");
  const auto* most = node.find("at-most");
  if (least == nullptr && most == nullptr)
    loading.notes.error(at, "\"count\" has no limit: add \"at-least\" or \"at-most\"");
  if (least != nullptr) property.at_least = whole_number(*least);
  if (most != nullptr) property.at_most = whole_number(*most);
  if (property.at_least && property.at_most && *property.at_least > *property.at_most)
    loading.notes.error(
        *most, "\"at-most\" (" + most->text + ") is less than \"at-least\" (" + least->text + "): that can never hold");
}

Property load_property(Loading& loading, const Node& node) {
  Property property;
  property.where = loading.notes.place(node);
  property.name = text_of(node.find("name"));
  if (const auto* for_each = node.find("for-each"); for_each != nullptr && for_each->is_map())
    property.for_each = load_pattern(loading, *for_each);
  using Kind = Property::Kind;
  const std::pair<const char*, Kind> kinds[] = {
      {"always", Kind::always}, {"never", Kind::never}, {"eventually", Kind::eventually}, {"count", Kind::count}};
  if (const auto* check = node.find("check"); check != nullptr) {
    property.kind = Kind::check;
    if (check->is_map()) property.check = load_check(loading, *check);
    return property;
  }
  for (const auto& [name, kind] : kinds) {
    const auto* pattern = node.find(name);
    if (pattern == nullptr || !pattern->is_map()) continue;
    property.kind = kind;
    property.pattern = load_pattern(loading, *pattern);
    check_keys(loading, node, *pattern, property);
    if (kind == Kind::always) load_always(loading, node, *pattern, property);
    if (kind == Kind::count) load_count(loading, node, *pattern, property);
    if (kind == Kind::eventually) property.within = duration_of(node.find("within"), std::chrono::seconds(10));
    break;
  }
  return property;
}

}  // namespace

void load_properties(Loading& loading) {
  const auto* node = loading.document.find("properties");
  auto& properties = loading.scenario.properties;
  for (std::size_t i = 0; node != nullptr && node->is_list() && i < node->items.size(); ++i) {
    const auto& item = node->items[i];
    if (!item.is_map()) continue;
    auto property = load_property(loading, item);
    const auto same = std::find_if(properties.begin(), properties.end(),
                                   [&](const Property& other) { return other.name == property.name; });
    if (same != properties.end() && !property.name.empty())
      loading.notes.error(*item.find("name"), "two properties are called \"" + property.name +
                                                  "\"; the first is in line " + std::to_string(same->where.line));
    properties.push_back(std::move(property));
  }
  if (properties.empty() && !loading.expects_something)
    loading.notes.warning(loading.document, "nothing can fail: there are no properties, and no step expects anything");
}

}  // namespace leafcutter::scenarios::loading
