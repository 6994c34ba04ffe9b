// Matchers and patterns: what is written beside an attribute path, and whether there is such an attribute.
#include <algorithm>

#include "base/text.hpp"
#include "scenarios/loader/loading.hpp"
#include "scenarios/matcher_text.hpp"

namespace leafcutter::scenarios::loading {
namespace {

class MatcherReader {
 public:
  MatcherReader(Loading& loading, const EventKind& kind) : loading_(loading), kind_(kind) {}

  /// `above`: the path of the mapping that these keys are in.
  std::vector<Matcher> read(const Node& node, const std::vector<std::string>& above,
                            const std::vector<std::string>& except) {
    std::vector<Matcher> matchers;
    for (std::size_t i = 0; i < node.items.size() && node.is_map(); ++i) {
      const auto& key = node.keys[i];
      if (key.text.empty() || std::find(except.begin(), except.end(), key.text) != except.end()) continue;
      auto path = above;
      const auto own = split_path(key.text);
      path.insert(path.end(), own.begin(), own.end());
      if (!has_attribute(kind_, path)) {
        unknown(key, path);
        continue;
      }
      if (auto matcher = read_one(node.items[i], path)) {
        matcher->path = own;
        matchers.push_back(std::move(*matcher));
      }
    }
    return matchers;
  }

 private:
  void unknown(const Node& key, const std::vector<std::string>& path) {
    auto names = attribute_names(kind_);
    const auto whole = joined_path(path);
    const auto near = nearest_path(path, names);
    if (near)
      loading_.notes.error(key, said() + " has no attribute \"" + whole + "\"; did you mean \"" + *near + "\"?");
    else
      loading_.notes.error(key, said() + " has no attribute \"" + whole + "\"; it has " + base::join_names(names));
  }

  std::string said() const { return kind_.lane.empty() ? kind_.name : "event \"" + kind_.name + "\""; }

  std::optional<Matcher> read_one(const Node& value, const std::vector<std::string>& path) {
    Matcher matcher;
    switch (value.kind) {
      case Node::Kind::null: matcher.value = nullptr; return matcher;
      case Node::Kind::scalar: return scalar(value, path);
      case Node::Kind::list: return list(value);
      case Node::Kind::map: return mapping(value, path);
    }
    return std::nullopt;
  }

  std::optional<Matcher> scalar(const Node& value, const std::vector<std::string>& path) {
    auto matcher = noted(value, scalar_matcher(value.text, value.plain));
    if (matcher && matcher->test == Matcher::Test::equals) check_name(value, path);
    return matcher;
  }

  std::optional<Matcher> noted(const Node& at, base::Expected<Matcher> matcher) {
    if (matcher) return std::move(*matcher);
    loading_.notes.error(at, matcher.error().message);
    return std::nullopt;
  }

  std::optional<Matcher> list(const Node& value) {
    Matcher matcher;
    matcher.test = Matcher::Test::one_of;
    matcher.value = to_value(value);
    for (const auto& item : value.items)
      if (item.is_map() || item.is_list())
        loading_.notes.error(item, "one of several values: expected a plain value, found " + describe(item));
    if (value.items.empty()) loading_.notes.error(value, "a list of alternatives is empty: nothing can match it");
    return matcher;
  }

  std::optional<Matcher> mapping(const Node& value, const std::vector<std::string>& path) {
    static const std::vector<std::string> tests = {"at-least", "at-most", "matches", "exists", "equals"};
    const auto is_test = [](const Node& key) { return std::find(tests.begin(), tests.end(), key.text) != tests.end(); };
    const auto count = static_cast<std::size_t>(std::count_if(value.keys.begin(), value.keys.end(), is_test));
    if (value.keys.empty()) {
      loading_.notes.error(value, "an empty mapping matches nothing in particular; write a value, a list or a test");
      return std::nullopt;
    }
    if (count == 0) {
      Matcher matcher;
      matcher.test = Matcher::Test::nested;
      matcher.nested = read(value, path, {});
      return matcher;
    }
    const bool is_range = value.find("at-least") != nullptr || value.find("at-most") != nullptr;
    if (count != value.keys.size() ||
        (is_range ? value.find("matches") || value.find("exists") || value.find("equals") : count != 1)) {
      loading_.notes.error(
          value, "a test is one of at-least (with at-most), matches, exists and equals; these keys do not go together");
      return std::nullopt;
    }
    return test(value, is_range);
  }

  std::optional<Matcher> test(const Node& value, bool is_range) {
    if (is_range) {
      std::optional<double> ends[2];
      bool good = true;
      for (const auto* name : {"at-least", "at-most"}) {
        const auto* end = value.find(name);
        if (end == nullptr) continue;
        const auto number = end->is_scalar() && end->plain ? number_in(end->text) : std::nullopt;
        if (!number)
          loading_.notes.error(*end, std::string("\"") + name + "\": expected a number, found " + describe(*end));
        good = good && number;
        ends[std::string(name) == "at-most"] = number;
      }
      return good ? noted(value, range_matcher(ends[0], ends[1])) : std::nullopt;
    }
    Matcher matcher;
    const auto& given = value.items.front();
    if (value.find("equals") != nullptr) {
      matcher.value = to_value(given);
      return matcher;
    }
    if (!given.is_scalar()) {
      loading_.notes.error(given, "\"" + value.keys.front().text + "\": expected " +
                                      (value.find("matches") ? "a regular expression" : "true or false") + ", found " +
                                      describe(given));
      return std::nullopt;
    }
    if (value.find("matches") != nullptr) return noted(given, regex_matcher(given.text));
    matcher.test = Matcher::Test::exists;
    matcher.value = to_value(given);
    if (matcher.value.is_boolean()) return matcher;
    loading_.notes.error(given, "\"exists\": expected true or false, found " + describe(given));
    return std::nullopt;
  }

  /// A pattern that names a lane nobody has would never match, and a property about it would hold for no reason.
  void check_name(const Node& value, const std::vector<std::string>& path) {
    if (path.size() != 1 || kind_.lane.empty()) return;
    const auto& attribute = path.front();
    auto known = service_names(loading_.scenario);
    if (attribute == "from" || attribute == "to") {
      known.emplace_back(workload_lane);
    } else if (attribute == "lane") {
      known.insert(known.end(), {workload_lane, "leaf"});
      for (const auto& link : loading_.scenario.links) known.push_back(link.id());
    } else if (attribute != "service" || kind_.lane != "service") {
      return;
    }
    if (value.text.starts_with(std::string(workload_lane) + "/") && attribute != "service") return;
    if (std::find(known.begin(), known.end(), value.text) == known.end())
      loading_.notes.error(value, "\"" + attribute + "\" of event \"" + kind_.name + "\": there is no " +
                                      (attribute == "lane" ? "lane" : "service") + " \"" + value.text + "\"" +
                                      suggestion(value.text, known));
  }

  Loading& loading_;
  const EventKind& kind_;
};

}  // namespace

const EventKind& answer_kind(std::string_view name) {
  static const std::vector<std::pair<std::string, EventKind>> kinds = {
      {"request", {"the answer to a request", "", "", {{"status", ""}, {"json", "", true}, {"body", ""}}}},
      {"exchange", {"the answer of an exchange", "", "", {{"reply", ""}}}},
      {"command", {"the result of a command", "", "", {{"exit", ""}, {"stdout", ""}, {"json", "", true}}}},
  };
  for (const auto& [known, kind] : kinds)
    if (known == name) return kind;
  return kinds.front().second;
}

std::vector<Matcher> load_matchers(Loading& loading, const Node& node, const EventKind& kind,
                                   const std::vector<std::string>& except) {
  return MatcherReader(loading, kind).read(node, {}, except);
}

namespace {

/// Requests can be told apart on HTTP ports only.
void warn_of_silence(Loading& loading, const Node& node, const Pattern& pattern) {
  const auto* attribute = pattern.event == events::request ? "to" : pattern.event == events::reply ? "from" : nullptr;
  const auto* named = attribute != nullptr ? node.find(attribute) : nullptr;
  const auto* service = named != nullptr && named->is_scalar() ? loading.scenario.service(named->text) : nullptr;
  if (service != nullptr && std::none_of(service->ports.begin(), service->ports.end(),
                                         [](const Port& port) { return port.protocol == Protocol::http; }))
    loading.notes.warning(*named, "no port of service \"" + service->name +
                                      "\" is declared as http, so there will be no event \"" + pattern.event + "\"");
}

}  // namespace

Pattern load_pattern(Loading& loading, const Node& node) {
  Pattern pattern;
  pattern.text = flow_text(node);
  pattern.event = text_of(node.find("event"));
  pattern.where_lua = text_of(node.find("where"));
  const auto* kind = event_kind(pattern.event);
  if (kind == nullptr) return pattern;
  pattern.matchers = load_matchers(loading, node, *kind, {"event", "key", "where"});
  warn_of_silence(loading, node, pattern);
  const auto* key = node.find("key");
  if (key == nullptr || !key->is_scalar() || key->text.empty()) return pattern;
  pattern.key = split_path(key->text);
  if (!has_attribute(*kind, pattern.key)) {
    const auto names = attribute_names(*kind);
    const auto near = nearest_path(pattern.key, names);
    loading.notes.error(*key, "\"key\": event \"" + kind->name + "\" has no attribute \"" + key->text + "\"" +
                                  (near ? "; did you mean \"" + *near + "\"?" : "; it has " + base::join_names(names)));
  }
  return pattern;
}

}  // namespace leafcutter::scenarios::loading
