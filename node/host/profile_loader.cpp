#include <re2/re2.h>

#include <algorithm>
#include <filesystem>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "node/host/profile.hpp"
#include "node/host/profile_vocabulary.hpp"
#include "scenarios/loader/structure.hpp"

namespace leafcutter::node::host {
namespace {

using scenarios::loading::Node;
using scenarios::loading::Notes;

std::string near_or_known(const std::string& word, const std::vector<std::string>& known) {
  if (const auto near = base::nearest(word, known)) return "; did you mean \"" + *near + "\"?";
  if (known.empty()) return "; there are none";
  return known.size() <= 16 ? "; known: " + base::join_names(known) : "";
}

/// Reads a document whose structure was checked and reported: what is malformed is left out.
class ProfileReader {
 public:
  ProfileReader(const Node& document, Notes& notes, std::string folder)
      : document_(document), notes_(notes), folder_(std::move(folder)) {}

  Profile read() {
    Profile out;
    out.name = text(document_, "name");
    out.about = text(document_, "about");
    out.features = texts(document_, "features");
    out.tiers = texts(document_, "tiers");
    out.pools = texts(document_, "pools");
    out.at_once = static_cast<unsigned>(number(document_, "at-once", 1));
    out.management = {22};
    if (const auto* ports = document_.find("management"); ports != nullptr && ports->is_list()) {
      out.management.clear();
      for (const auto& port : ports->items)
        out.management.push_back(static_cast<unsigned>(scenarios::loading::whole_number(port).value_or(0)));
    }
    each("commands", [&](const Node& key, const Node& node) { add_command(out, key, node); });
    each("services", [&](const Node& key, const Node& node) { out.services[key.text] = service(out, node); });
    each("signal", [&](const Node& key, const Node& node) { out.signal[key.text] = target(out, node); });
    each("probe", [&](const Node& key, const Node& node) { out.probes[key.text] = probe(node); });
    each("configure",
         [&](const Node& key, const Node& node) { out.configurations[key.text] = configuration(out, node); });
    if (const auto* node = document_.find("cpu")) out.cpu = pressure(*node, "workers", 0);
    if (const auto* node = document_.find("memory")) out.memory = pressure(*node, "megabytes", 256);
    if (const auto* node = document_.find("disk")) out.disk = pressure(*node, "megabytes", 64);
    if (const auto* node = document_.find("network")) out.network = shaping(*node);
    return out;
  }

 private:
  template <class Take>
  void each(const char* key, Take take) {
    const auto* map = document_.find(key);
    if (map == nullptr || !map->is_map()) return;
    for (std::size_t i = 0; i < map->items.size(); ++i)
      if (map->items[i].is_map()) take(map->keys[i], map->items[i]);
  }

  static std::string text(const Node& node, const char* key, const std::string& preset = {}) {
    const auto* value = node.find(key);
    return value != nullptr && value->is_scalar() ? value->text : preset;
  }
  static std::vector<std::string> texts(const Node& node, const char* key) {
    std::vector<std::string> out;
    if (const auto* list = node.find(key); list != nullptr && list->is_list())
      for (const auto& item : list->items) out.push_back(item.text);
    return out;
  }
  static std::uint64_t number(const Node& node, const char* key, std::uint64_t preset) {
    const auto* value = node.find(key);
    return value == nullptr ? preset : scenarios::loading::whole_number(*value).value_or(preset);
  }
  static std::chrono::nanoseconds span(const Node& node, const char* key, std::chrono::nanoseconds preset) {
    const auto parsed = base::parse_duration(text(node, key));
    return parsed ? *parsed : preset;
  }

  static Pressure pressure(const Node& node, const char* most, std::uint64_t reserve) {
    return {span(node, "for", {}), number(node, most, 0), number(node, "reserve", reserve),
            static_cast<int>(number(node, "nice", 0)), texts(node, "folders")};
  }

  static Shaping shaping(const Node& node) {
    return {span(node, "for", {}), texts(node, "interfaces"), span(node, "delay", {}), number(node, "loss", 0),
            number(node, "slowest", 0)};
  }

  Argument argument(const Node& node) {
    Argument out;
    if (node.is_scalar()) {
      out.text = node.text;
      if (node.text.find('\0') != std::string::npos) notes_.error(node, "an argument cannot hold a zero byte");
      return out;
    }
    if (node.find("one-of") != nullptr) {
      out.kind = Argument::Kind::one_of;
      out.words = texts(node, "one-of");
    } else if (const auto* from = node.find("from")) {
      out.kind = Argument::Kind::integer;
      out.from = number(node, "from", 0);
      out.to = number(node, "to", 0);
      if (node.find("to") == nullptr)
        notes_.error(*from, "\"from\" needs \"to\": a number without a limit is none that was reviewed");
      else if (out.to < out.from)
        notes_.error(*from, "no number is from " + std::to_string(out.from) + " to " + std::to_string(out.to));
    } else {
      out.kind = Argument::Kind::matches;
      out.text = text(node, "matches");
    }
    return out;
  }

  void add_command(Profile& out, const Node& key, const Node& node) {
    CommandEntry entry;
    entry.name = key.text;
    entry.program = text(node, "program");
    entry.sha256 = text(node, "sha256");
    if (const auto* arguments = node.find("arguments"); arguments != nullptr && arguments->is_list())
      for (const auto& item : arguments->items) entry.arguments.push_back(argument(item));
    if (const auto* environment = node.find("environment"); environment != nullptr && environment->is_map())
      for (std::size_t i = 0; i < environment->items.size(); ++i)
        entry.environment.emplace_back(environment->keys[i].text, environment->items[i].text);
    entry.folder = text(node, "folder", "/");
    entry.within = span(node, "within", entry.within);
    entry.at_once = static_cast<unsigned>(number(node, "at-once", 1));
    for (const auto& earlier : out.commands)
      if (earlier.program == entry.program && earlier.arguments == entry.arguments)
        notes_.error(key, "command \"" + key.text + "\" has the argument vector of \"" + earlier.name +
                              "\" and would never be taken; remove one of them");
    out.commands.push_back(std::move(entry));
  }

  /// A command of this profile with fixed arguments.
  std::string command_of(const Profile& out, const Node& node, const char* key) {
    const auto* value = node.find(key);
    if (value == nullptr || !value->is_scalar()) return {};
    const auto* entry = out.command(value->text);
    std::vector<std::string> names;
    for (const auto& known : out.commands) names.push_back(known.name);
    if (entry == nullptr)
      notes_.error(*value, std::string(key) + ": there is no command \"" + value->text + "\" in \"commands\"" +
                               near_or_known(value->text, names));
    else if (!entry->fixed_vector())
      notes_.error(*value, std::string(key) + ": command \"" + value->text +
                               "\" leaves arguments open; name one whose arguments are all text");
    return value->text;
  }

  ServiceEntry service(const Profile& out, const Node& node) {
    return {command_of(out, node, "restart"), command_of(out, node, "recover"), command_of(out, node, "healthy"),
            span(node, "within", std::chrono::seconds(30))};
  }

  SignalTarget target(const Profile& out, const Node& node) {
    SignalTarget made{text(node, "pid-file"), text(node, "process"), texts(node, "signals"), text(node, "service")};
    if (made.process.size() > 15)
      notes_.error(*node.find("process"), "process: the kernel keeps 15 bytes of a name, found \"" + made.process +
                                              "\"; would do: \"" + made.process.substr(0, 15) + "\"");
    if (const auto* value = node.find("service"); value != nullptr && !out.services.contains(value->text)) {
      std::vector<std::string> names;
      for (const auto& [name, unused] : out.services) names.push_back(name);
      notes_.error(*value, "service: there is no service \"" + value->text + "\" in \"services\"" +
                               near_or_known(value->text, names));
    }
    if (const auto* list = node.find("signals"); list != nullptr && list->is_list() && made.service.empty())
      for (const auto& signal : list->items)
        if (is_destructive_signal(signal.text))
          notes_.error(signal, "signals: " + signal.text +
                                   " ends the process, and nothing is said to bring it back; "
                                   "add \"service\"");
    return made;
  }

  ProbeEntry probe(const Node& node) {
    ProbeEntry out;
    for (const auto& [key, kind] : {std::pair("http", ProbeEntry::Kind::http), std::pair("tcp", ProbeEntry::Kind::tcp),
                                    std::pair("dns", ProbeEntry::Kind::dns)})
      if (node.find(key) != nullptr) {
        out.kind = kind;
        out.host = text(node, key);
      }
    out.port = static_cast<unsigned>(number(node, "port", 0));
    out.path = text(node, "path", "/");
    out.name = text(node, "name");
    out.within = span(node, "within", out.within);
    if (out.kind == ProbeEntry::Kind::dns && out.name.empty())
      notes_.error(node, "a probe with \"dns\" needs \"name\": what is looked up");
    return out;
  }

  Configuration configuration(const Profile& out, const Node& node) {
    Configuration made;
    made.file = text(node, "file");
    made.longest = span(node, "for", {});
    made.reload = command_of(out, node, "reload");
    const auto* variants = node.find("variants");
    if (variants == nullptr || !variants->is_map()) return made;
    for (std::size_t i = 0; i < variants->items.size(); ++i) {
      auto content = text(variants->items[i], "content");
      if (!content.starts_with('/')) content = (std::filesystem::path(folder_) / content).lexically_normal().string();
      made.variants[variants->keys[i].text] = {content, text(variants->items[i], "sha256")};
    }
    return made;
  }

  const Node& document_;
  Notes& notes_;
  std::string folder_;
};

}  // namespace

ProfileLoadResult load_profile_text(std::string_view text, const std::string& file) {
  Notes notes(file);
  ProfileLoadResult result;
  scenarios::loading::DocumentRules rules;
  rules.noun = "host profile";
  rules.opening = "profile: 1";
  if (const auto document = scenarios::loading::parse_document(text, notes, rules)) {
    const auto& vocabulary = profile_vocabulary();
    scenarios::loading::check_against(vocabulary, vocabulary.shapes.front().name, *document, "", notes);
    std::error_code error;
    const auto folder = std::filesystem::absolute(std::filesystem::path(file).parent_path(), error).string();
    auto profile = ProfileReader(*document, notes, folder).read();
    profile.digest = base::sha256(text);
    if (!notes.any_error()) result.profile = std::move(profile);
  }
  result.errors = notes.errors();
  return result;
}

ProfileLoadResult load_profile_file(const std::string& path) {
  const auto text = base::read_file(path);
  if (text) return load_profile_text(*text, path);
  ProfileLoadResult result;
  result.errors.push_back({base::ErrorCode::bad_input, text.error().message, {path, 0, 0}});
  return result;
}

}  // namespace leafcutter::node::host
