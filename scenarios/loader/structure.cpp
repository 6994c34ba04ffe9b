#include "scenarios/loader/structure.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "scenarios/matcher_text.hpp"
#include "scenarios/predicate.hpp"
#include "scenarios/regex.hpp"

namespace leafcutter::scenarios::loading {
namespace {

using Kind = Form::Kind;

/// Where we are, in the words of a message: `what` is "service \"shop\"", `number` counts elements of lists ("1.2").
struct Spot {
  std::string what;
  std::string number;
};

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string hint(const std::string& word, const std::vector<std::string>& known) {
  if (const auto near = near_name(word, known)) return "; did you mean " + quoted(*near) + "?";
  if (known.empty() || known.size() > 16) return "";
  return "; known: " + base::join_names(known);
}

/// The names of a closed set, however many.
std::string hint_of_all(const std::string& word, const std::vector<std::string>& known) {
  if (const auto near = near_name(word, known)) return "; did you mean " + quoted(*near) + "?";
  return "; known: " + base::join_names(known);
}

class Checker {
 public:
  Checker(const Vocabulary& vocabulary, Notes& notes)
      : vocabulary_(vocabulary), paths_(vocabulary.places == Vocabulary::Places::paths), notes_(notes) {}

  void check_shape(const Node& node, const Shape& shape, const Spot& spot) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) check_entry(node, i, shape, spot);
    const auto misspelt =
        misspelt_keys(node, shape);  // it has been said what they should be called: no need to miss them, too
    const auto hopeful = [&](const std::vector<std::string>& keys) {
      return std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return misspelt.count(key) > 0; });
    };
    for (const auto& key : shape.keys)
      if (key.required && node.find(key.name) == nullptr && misspelt.count(key.name) == 0)
        notes_.error(node, about(spot) + " lacks \"" + key.name + "\": " + key.about);
    if (!shape.one_of.empty() && !hopeful(shape.one_of)) check_one_of(node, shape, spot);
    if (!shape.some_of.empty() && !hopeful(shape.some_of) &&
        std::none_of(shape.some_of.begin(), shape.some_of.end(),
                     [&](const auto& key) { return node.find(key) != nullptr; }))
      notes_.error(node, about(spot) + " says nothing: it needs at least one of " + base::join_names(shape.some_of));
  }

 private:
  static std::set<std::string> misspelt_keys(const Node& node, const Shape& shape) {
    std::set<std::string> meant;
    if (!shape.others.empty()) return meant;
    for (const auto& key : node.keys)
      if (shape.key(key.text) == nullptr)
        if (const auto near = near_name(key.text, shape.key_names())) meant.insert(*near);
    return meant;
  }

  void check_entry(const Node& node, std::size_t i, const Shape& shape, const Spot& spot) {
    const auto& name = node.keys[i];
    const auto* key = shape.key(name.text);
    if (key == nullptr) {
      if (!shape.others.empty()) return;  // an attribute path; what follows knows which there are
      if (!name.text.empty())
        notes_.error(name,
                     "unknown key " + describe(name) + " in " + inside(spot) + hint(name.text, shape.key_names()));
      return;
    }
    const bool belongs =
        key->only_with.empty() || std::any_of(key->only_with.begin(), key->only_with.end(),
                                              [&](const auto& other) { return node.find(other) != nullptr; });
    // A mapping that says nothing of what it is has its own message; one more for every key would only hide it.
    const bool known = std::any_of(shape.one_of.begin(), shape.one_of.end(),
                                   [&](const auto& other) { return node.find(other) != nullptr; });
    if (!belongs && known)
      notes_.error(name,
                   quoted(name.text) + " in " + inside(spot) + " goes only with " + base::join_names(key->only_with));
    const bool top = &shape == &vocabulary_.shapes.front();
    if (paths_)
      check(node.items[i], key->form, {spot.what + (spot.what.empty() ? "" : ".") + name.text, ""});
    else
      check(node.items[i], key->form, {quoted(name.text) + (top ? "" : " of " + spot.what), spot.number});
  }

  /// "service "shop"" or "phases[0]: it", before what is said of it.
  std::string about(const Spot& spot) const {
    if (!paths_) return spot.what;
    return spot.what.empty() ? "the document" : spot.what + ": it";
  }
  std::string inside(const Spot& spot) const { return spot.what.empty() ? "the document" : spot.what; }

  void check_one_of(const Node& node, const Shape& shape, const Spot& spot) {
    std::vector<std::string> given;
    const Node* second = nullptr;
    for (const auto& key : node.keys)
      if (std::find(shape.one_of.begin(), shape.one_of.end(), key.text) != shape.one_of.end()) {
        given.push_back(key.text);
        if (given.size() == 2) second = &key;
      }
    if (given.empty()) notes_.error(node, about(spot) + " needs one of " + base::join_names(shape.one_of));
    if (second != nullptr)
      notes_.error(*second, about(spot) + " has " + base::join_names(given) + ", but only one of them can be");
  }

  void wrong(const Node& node, const Form& form, const Spot& spot) {
    if (node.reported) return;
    const bool quoted_number = (form.kind == Kind::integer || form.kind == Kind::number) && node.is_scalar() &&
                               !node.plain && number_in(node.text);
    notes_.error(node, inside(spot) + ": expected " + vocabulary_.expected(form) + ", found " +
                           (quoted_number ? "the text " + describe(node) + "; leave out the quotes" : describe(node)));
  }

  void check(const Node& node, const Form& form, const Spot& spot) {
    if (form.nullable && node.kind == Node::Kind::null && !node.reported) return;
    switch (form.kind) {
      case Kind::any: return;
      case Kind::list: return check_list(node, form, spot);
      case Kind::map: return check_map(node, form, spot);
      case Kind::matchers:
        if (!node.is_map()) wrong(node, form, spot);
        return;
      case Kind::shape:
        if (!node.is_map()) return wrong(node, form, spot);
        return check_shape(node, vocabulary_.shape(form.noun), spot);
      case Kind::tagged:
        if (!node.is_map()) return wrong(node, form, spot);
        return check_tagged(node, form, spot);
      case Kind::either: return check_either(node, form, spot);
      default:
        if (!node.is_scalar()) return wrong(node, form, spot);
        return check_scalar(node, form, spot);
    }
  }

  void check_scalar(const Node& node, const Form& form, const Spot& spot) {
    switch (form.kind) {
      case Kind::text:
        if (node.text.size() < form.least) notes_.error(node, spot.what + " is empty");
        return;
      case Kind::name:
        if (!is_name(node.text)) wrong(node, form, spot);
        return;
      case Kind::variable:
        if (!is_variable(node.text)) wrong(node, form, spot);
        return;
      case Kind::boolean:
        if (!node.plain || (node.text != "true" && node.text != "false")) wrong(node, form, spot);
        return;
      case Kind::integer: {
        const auto number = whole_number(node);
        if (!number || *number < form.least || *number > form.most) wrong(node, form, spot);
        return;
      }
      case Kind::number: {
        const auto number = node.plain ? number_in(node.text) : std::nullopt;
        if (!number || !std::isfinite(*number) || *number < form.from || *number > form.to ||
            (form.above && *number == form.from))
          wrong(node, form, spot);
        return;
      }
      case Kind::pattern:
        if (!regex_search(form.words.front(), node.text)) wrong(node, form, spot);
        return;
      case Kind::duration: return check_duration(node, form, spot);
      case Kind::regex:
        if (const auto checked = check_regex(node.text); !checked)
          notes_.error(node, spot.what + ": " + checked.error().message);
        return;
      case Kind::lua:
        if (const auto compiled = LuaExpression::compile(node.text); !compiled)
          notes_.error(node, spot.what + ": " + compiled.error().message);
        return;
      case Kind::word:
        if (std::find(form.words.begin(), form.words.end(), node.text) == form.words.end())
          notes_.error(node, spot.what + ": unknown " + form.noun + " " + describe(node) + hint(node.text, form.words));
        return;
      default: return;
    }
  }

  void check_duration(const Node& node, const Form& form, const Spot& spot) {
    const auto duration = base::parse_duration(node.text);
    if (!duration) return notes_.error(node, spot.what + ": " + duration.error().message);
    const auto least = std::chrono::nanoseconds(form.least);
    const auto most = std::chrono::nanoseconds(form.most);
    if (*duration < least || *duration > most)
      notes_.error(node, spot.what + ": expected a duration from " + base::format_duration(least) + " to " +
                             base::format_duration(most) + ", found " + describe(node));
  }

  void check_list(const Node& node, const Form& form, const Spot& spot) {
    if (!node.is_list()) return wrong(node, form, spot);
    if (node.items.size() < form.least) notes_.error(node, spot.what + " is empty");
    if (node.items.size() > form.most)
      notes_.error(node, spot.what + " has " + std::to_string(node.items.size()) + " elements; at most " +
                             std::to_string(form.most) + " are allowed");
    for (std::size_t i = 0; i < node.items.size(); ++i)
      check(node.items[i], form.parts[0], element(node.items[i], i, form.parts[0], spot));
  }

  /// "step 2.1", "property \"an order is announced\"", "item 2 of \"needs\" of service \"shop\"".
  Spot element(const Node& node, std::size_t index, const Form& form, const Spot& spot) const {
    if (paths_) return {spot.what + "[" + std::to_string(index) + "]", ""};
    const auto number = (spot.number.empty() ? "" : spot.number + ".") + std::to_string(index + 1);
    if (form.kind == Kind::list) return {"branch " + number, number};
    if (form.kind == Kind::shape || (form.kind == Kind::either && node.is_map())) {
      const auto noun = form.kind == Kind::shape ? form.noun : form.parts.back().noun;
      const auto* name = noun == "property" ? node.find("name") : nullptr;
      if (name != nullptr && name->is_scalar() && !name->text.empty()) return {noun + " " + quoted(name->text), ""};
      return {noun + " " + number, number};
    }
    return {"item " + std::to_string(index + 1) + " of " + spot.what, spot.number};
  }

  void check_map(const Node& node, const Form& form, const Spot& spot) {
    if (!node.is_map()) return wrong(node, form, spot);
    if (node.items.size() < form.least) notes_.error(node, spot.what + " is empty");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const auto& key = node.keys[i];
      const bool good = form.keys == Kind::text       ? !key.text.empty()
                        : form.keys == Kind::variable ? is_variable(key.text)
                                                      : is_name(key.text);
      if (!good) {
        Form wanted;
        wanted.kind = form.keys;
        notes_.error(key,
                     "key of " + spot.what + ": expected " + vocabulary_.expected(wanted) + ", found " + describe(key));
      }
      const auto& value = form.parts[0];
      const auto noun = value.kind == Kind::shape    ? value.noun
                        : value.kind == Kind::either ? value.parts.back().noun
                                                     : "";
      if (paths_) {
        check(node.items[i], value, {spot.what + "." + key.text, ""});
        continue;
      }
      const auto of = spot.what.starts_with("\"services\"") ? "" : " of " + owner(spot.what);
      check(node.items[i], value,
            noun.empty() ? Spot{quoted(key.text) + " in " + spot.what, ""}
                         : Spot{noun + " " + quoted(key.text) + of, ""});
    }
  }

  /// "\"ports\" of service \"shop\"" -> "service \"shop\"".
  static std::string owner(const std::string& what) {
    const auto at = what.find(" of ");
    return at == std::string::npos ? what : what.substr(at + 4);
  }

  /// Which shape it has is said by one of its keys.
  void check_tagged(const Node& node, const Form& form, const Spot& spot) {
    const auto* tag = node.find(form.noun);
    if (tag == nullptr) {
      for (const auto& key : node.keys)
        if (near_name(key.text, {form.noun}))
          return notes_.error(key,
                              "unknown key " + describe(key) + " in " + inside(spot) + hint(key.text, {form.noun}));
      return notes_.error(node, about(spot) + " lacks \"" + form.noun + "\": one of " + base::join_names(form.words));
    }
    const Spot at{spot.what.empty() ? form.noun : spot.what + "." + form.noun, ""};
    const auto found = std::find(form.words.begin(), form.words.end(), tag->text);
    if (tag->is_scalar() && found != form.words.end())
      return check_shape(node, vocabulary_.shape(form.parts[static_cast<std::size_t>(found - form.words.begin())].noun),
                         spot);
    if (tag->reported) return;
    notes_.error(*tag, at.what + ": unknown " + form.noun + " " + describe(*tag) + hint_of_all(tag->text, form.words));
  }

  void check_either(const Node& node, const Form& form, const Spot& spot) {
    for (const auto& part : form.parts) {
      const auto wanted = part.kind == Kind::list                              ? Node::Kind::list
                          : part.kind == Kind::shape || part.kind == Kind::map ? Node::Kind::map
                                                                               : Node::Kind::scalar;
      if (node.kind == wanted) return check(node, part, spot);
    }
    wrong(node, form, spot);
  }

  const Vocabulary& vocabulary_;
  bool paths_;
  Notes& notes_;
};

}  // namespace

void check_against(const Vocabulary& vocabulary, const std::string& shape, const Node& node, const std::string& place,
                   Notes& notes) {
  if (!node.is_map()) return notes.error(node, place + ": expected a mapping, found " + describe(node));
  Checker(vocabulary, notes).check_shape(node, vocabulary.shape(shape), {place, ""});
}

bool check_structure(const Node& document, Notes& notes) {
  if (!document.is_map()) {
    notes.error(document,
                "the document: expected a mapping that begins with \"leafcutter: 1\", found " + describe(document));
    return false;
  }
  if (const auto* version = document.find("leafcutter"); version != nullptr) {
    const auto number = whole_number(*version);
    if (number && *number != static_cast<std::uint64_t>(language_version)) {
      notes.error(*version, "version " + version->text +
                                " of the scenario language is not known here; this program reads version " +
                                std::to_string(language_version));
      return false;
    }
  }
  check_against(vocabulary(), "document", document, "the document", notes);
  return true;
}

}  // namespace leafcutter::scenarios::loading
