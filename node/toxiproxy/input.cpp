#include "node/toxiproxy/input.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

constexpr std::size_t most_notes = 8, longest_noted_key = 64;
/// Values are copied and destroyed by recursion.
constexpr int deepest_nesting = 16;

base::Error bad_body(const std::string& why) { return {base::ErrorCode::bad_input, "bad request body: " + why, {}}; }

bool same_key(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string kind_of_value(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::null: return "null";
    default: return "a number";
  }
}

/// One JSON object as it is read: which keys were asked for, and what is wrong first.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) complain("", kind_of_value(object) + "; an object would do");
  }

  /// Of several keys that differ in their case the one that is spelt so, or else any. Null when it is not there.
  const Json* find(std::string_view key) {
    known_.emplace_back(key);
    if (!object_.is_object()) return nullptr;
    const Json* found = nullptr;
    for (const auto& item : object_.items()) {
      if (!same_key(item.key(), key)) continue;
      found = &item.value();
      if (item.key() == key) break;
    }
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  void read(std::string_view key, std::optional<std::string>& to) {
    const auto* value = find(key);
    if (value == nullptr) return;
    if (value->is_string())
      to = value->get<std::string>();
    else
      complain(key, kind_of_value(*value) + "; a string would do");
  }
  void read(std::string_view key, std::optional<bool>& to) {
    const auto* value = find(key);
    if (value == nullptr) return;
    if (value->is_boolean())
      to = value->get<bool>();
    else
      complain(key, kind_of_value(*value) + "; true or false would do");
  }
  void read(std::string_view key, std::optional<double>& to) {
    const auto* value = find(key);
    if (value == nullptr) return;
    if (value->is_number())
      to = value->get<double>();
    else
      complain(key, kind_of_value(*value) + "; a number would do");
  }
  /// A whole number that is not negative, up to `most`; 1.0 is one.
  void read(std::string_view key, std::int64_t most, std::optional<std::int64_t>& to) {
    const auto* value = find(key);
    if (value == nullptr) return;
    const auto wanted = "; a whole number from 0 to " + std::to_string(most) + " would do";
    if (!value->is_number()) {
      complain(key, kind_of_value(*value) + wanted);
    } else if (value->is_number_integer()) {
      const bool good = value->is_number_unsigned() && value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
      good ? to = value->get<std::int64_t>() : (complain(key, value->dump() + wanted), to);
    } else {
      const auto number = value->get<double>();
      // 2^53: from there on not every whole number can be said.
      const bool good =
          number >= 0 && number <= 0x1.0p53 && number <= static_cast<double>(most) && std::floor(number) == number;
      good ? to = static_cast<std::int64_t>(number) : (complain(key, value->dump() + wanted), to);
    }
  }
  void complain(std::string_view key, const std::string& why) {
    if (error_) return;
    auto at = path_;
    if (!key.empty()) at += (at.empty() ? "" : ".") + std::string(key);
    error_ = bad_body((at.empty() ? "" : at + ": ") + why);
  }
  /// Of keys that nobody asked for.
  void note_others(Notes& notes, std::string_view what) const {
    if (!object_.is_object()) return;
    for (const auto& item : object_.items()) {
      const auto& key = item.key();
      if (std::any_of(known_.begin(), known_.end(), [&](const std::string& one) { return same_key(one, key); }))
        continue;
      if (notes.size() >= most_notes || key.size() > longest_noted_key) continue;
      std::string note = (path_.empty() ? "" : path_ + ".") + key + " is no " + std::string(what);
      if (const auto near = base::nearest(key, known_)) note += "; did you mean \"" + *near + "\"?";
      notes.push_back(std::move(note));
    }
  }
  std::string at(std::string_view key) const { return (path_.empty() ? "" : path_ + ".") + std::string(key); }
  const std::optional<base::Error>& error() const { return error_; }

 private:
  const Json& object_;
  std::string path_;
  std::vector<std::string> known_;
  std::optional<base::Error> error_;
};

base::Expected<Json> parse_json(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return bad_body("empty; JSON would do");
  bool too_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > deepest_nesting;
    return !too_deep;
  };
  try {
    auto json = Json::parse(body, watch_depth);
    if (too_deep) return bad_body("nested deeper than " + std::to_string(deepest_nesting) + " levels");
    return json;
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": what follows the library's own name.
    const std::string_view text = error.what();
    const auto bracket = text.find("] ");
    return bad_body(std::string(bracket == std::string_view::npos ? text : text.substr(bracket + 2)));
  }
}

base::Expected<proxy::Ordinals> read_ordinals(const Json& value, const std::string& path, Notes& notes) {
  proxy::Ordinals ordinals;
  ObjectReader reader(value, path);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::optional<std::int64_t> first, last, every;
  reader.read("first", most, first);
  reader.read("last", most, last);
  reader.read("every", most, every);
  reader.note_others(notes, "field of connections");
  if (reader.error()) return *reader.error();
  if (first) ordinals.first = static_cast<std::uint64_t>(*first);
  if (last) ordinals.last = static_cast<std::uint64_t>(*last);
  if (every) ordinals.every = static_cast<std::uint64_t>(*every);
  return ordinals;
}

base::Expected<Only> read_only(const Json& value, const std::string& path, Notes& notes) {
  Only only;
  ObjectReader reader(value, path);
  if (const auto* connections = reader.find("connections")) {
    auto read = read_ordinals(*connections, reader.at("connections"), notes);
    if (!read) return read.error();
    only.connections = *read;
  }
  if (const auto* peers = reader.find("peers")) {
    if (!peers->is_array()) reader.complain("peers", kind_of_value(*peers) + "; an array of addresses would do");
    for (const auto& peer : *peers) {
      if (peer.is_string())
        only.peers.push_back(peer.get<std::string>());
      else
        reader.complain("peers", kind_of_value(peer) + "; addresses are strings");
    }
  }
  reader.note_others(notes, "field of only");
  if (reader.error()) return *reader.error();
  return only;
}

base::Expected<ToxicInput> read_toxic_value(const Json& value, const std::string& path, Notes& notes) {
  ToxicInput input;
  ObjectReader reader(value, path);
  reader.read("name", input.name);
  reader.read("type", input.type);
  reader.read("stream", input.stream);
  reader.read("toxicity", input.toxicity);
  if (const auto* attributes = reader.find("attributes")) {
    if (!attributes->is_object()) reader.complain("attributes", kind_of_value(*attributes) + "; an object would do");
    input.attributes = *attributes;
  }
  if (const auto* only = reader.find("only")) {
    auto read = read_only(*only, reader.at("only"), notes);
    if (!read) return read.error();
    input.only = *read;
  }
  reader.note_others(notes, "field of a toxic");
  if (reader.error()) return *reader.error();
  return input;
}

base::Expected<ProxyInput> read_proxy_value(const Json& value, const std::string& path, Notes& notes) {
  ProxyInput input;
  ObjectReader reader(value, path);
  reader.read("name", input.name);
  reader.read("listen", input.listen);
  reader.read("upstream", input.upstream);
  reader.read("enabled", input.enabled);
  (void)reader.find("logger");  // Toxiproxy says it of its proxies, and clients may send back what they were told
  if (const auto* toxics = reader.find("toxics")) {
    input.toxics.emplace();
    if (!toxics->is_array()) {
      reader.complain("toxics", kind_of_value(*toxics) + "; an array would do");
    } else if (toxics->size() > most_toxics_of_proxy) {
      reader.complain("toxics",
                      std::to_string(toxics->size()) + "; " + std::to_string(most_toxics_of_proxy) + " at most");
    } else {
      for (const auto& toxic : *toxics) {
        auto read =
            read_toxic_value(toxic, reader.at("toxics") + "[" + std::to_string(input.toxics->size()) + "]", notes);
        if (!read) return read.error();
        input.toxics->push_back(std::move(*read));
      }
    }
  }
  reader.note_others(notes, "field of a proxy");
  if (reader.error()) return *reader.error();
  return input;
}

base::Status merge_attributes(Toxic& toxic, const ToxicKind& kind, const Json& given, Notes& notes) {
  if (given.is_null()) return base::ok();
  ObjectReader reader(given, "attributes");
  for (const auto& attribute : kind.attributes) {
    std::optional<std::int64_t> value;
    reader.read(attribute.name, attribute.most, value);
    if (value) toxic.attributes[std::string(attribute.name)] = *value;
  }
  reader.note_others(notes, "attribute of " + std::string(kind.type));
  if (reader.error()) return *reader.error();
  return base::ok();
}

base::Status merge_toxic(Toxic& toxic, const ToxicKind& kind, const ToxicInput& input, Notes& notes) {
  if (input.toxicity) {
    if (!(*input.toxicity >= 0 && *input.toxicity <= 1))
      return bad_body("toxicity: " + Json(*input.toxicity).dump() + "; a number from 0 to 1 would do");
    toxic.toxicity = *input.toxicity;
  }
  if (const auto merged = merge_attributes(toxic, kind, input.attributes, notes); !merged) return merged;
  if (input.only) toxic.only = *input.only;
  // What the engine would refuse is refused before anything is changed.
  if (const auto good = proxy::checked(faults_of({toxic}), proxy::Transport::tcp); !good) {
    const auto& text = good.error().message;
    const auto field = text.find(") ");
    return bad_body(field == std::string::npos ? text : text.substr(field + 2));
  }
  return base::ok();
}

}  // namespace

base::Expected<ProxyInput> read_proxy(std::string_view body, Notes& notes) {
  const auto json = parse_json(body);
  if (!json) return json.error();
  return read_proxy_value(*json, "", notes);
}

base::Expected<std::vector<ProxyInput>> read_proxies(std::string_view body, Notes& notes, ProxyList list) {
  const auto json = parse_json(body);
  if (!json) return json.error();
  const bool named = list == ProxyList::array_or_named && json->is_object();
  if (!json->is_array() && !named) return bad_body(kind_of_value(*json) + "; an array of proxies would do");
  if (json->size() > most_proxies)
    return bad_body(std::to_string(json->size()) + " proxies; " + std::to_string(most_proxies) + " at most");
  std::vector<ProxyInput> inputs;
  for (const auto& value : *json) {
    auto read = read_proxy_value(value, "proxies[" + std::to_string(inputs.size()) + "]", notes);
    if (!read) return read.error();
    inputs.push_back(std::move(*read));
  }
  return inputs;
}

base::Expected<ToxicInput> read_toxic(std::string_view body, Notes& notes) {
  const auto json = parse_json(body);
  if (!json) return json.error();
  return read_toxic_value(*json, "", notes);
}

base::Expected<Toxic> new_toxic(const ToxicInput& input, Notes& notes) {
  Toxic toxic;
  if (input.stream) {
    const auto stream = stream_named(*input.stream);
    if (!stream)
      return base::Error{base::ErrorCode::bad_input, "stream was invalid, can be either upstream or downstream", {}};
    toxic.stream = *stream;
  }
  const auto* kind = toxic_kind(input.type.value_or(""));
  if (kind == nullptr) return base::Error{base::ErrorCode::bad_input, "invalid toxic type", {}};
  toxic.type = kind->type;
  toxic.name = input.name.value_or("");
  if (toxic.name.empty()) toxic.name = toxic.type + "_" + std::string(name_of(toxic.stream));
  for (const auto& attribute : kind->attributes) toxic.attributes[std::string(attribute.name)] = 0;
  if (const auto merged = merge_toxic(toxic, *kind, input, notes); !merged) return merged.error();
  return toxic;
}

base::Expected<Toxic> changed_toxic(Toxic toxic, const ToxicInput& input, Notes& notes) {
  const auto* kind = toxic_kind(toxic.type);
  if (kind == nullptr) return base::Error{base::ErrorCode::internal, "a toxic of no type", {}};
  if (const auto merged = merge_toxic(toxic, *kind, input, notes); !merged) return merged.error();
  return toxic;
}

}  // namespace leafcutter::node::toxiproxy
