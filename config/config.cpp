#include "config/config.hpp"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "base/text.hpp"

namespace leafcutter::config {
namespace {

/// One key of the file: how its text becomes a setting.
struct Key {
  std::string name;
  std::function<base::Status(const std::string& text, Config& config)> apply;
};

base::Error bad(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

base::Status apply_slots(const std::string& text, Config& config) {
  const auto value = std::strtoul(text.c_str(), nullptr, 10);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || value == 0 || value > 1024)
    return bad("\"slots\" is a whole number from 1 to 1024, found \"" + text + "\"");
  config.slots = static_cast<unsigned>(value);
  return base::ok();
}

base::Status apply_lease_time(const std::string& text, Config& config) {
  const auto value = base::parse_duration(text);
  if (!value) return bad("\"lease-time\": " + value.error().message);
  if (*value < std::chrono::seconds(4))
    return bad("\"lease-time\" must be at least 4s: it is renewed every quarter of it");
  config.lease_time = *value;
  return base::ok();
}

std::function<base::Status(const std::string&, Config&)> set_text(std::string Config::*member) {
  return [member](const std::string& text, Config& config) -> base::Status {
    if (text.empty()) return bad("expected some text, found nothing");
    config.*member = text;
    return base::ok();
  };
}

const std::vector<Key>& keys() {
  static const std::vector<Key> list = {{"slots", apply_slots},
                                        {"out", set_text(&Config::out)},
                                        {"listen", set_text(&Config::listen)},
                                        {"events", set_text(&Config::events)},
                                        {"lease-time", apply_lease_time}};
  return list;
}

base::Place place(const std::string& file, const YAML::Mark& mark) { return {file, mark.line + 1, mark.column + 1}; }

base::Status apply(const YAML::Node& root, const std::string& path, Config& config) {
  std::vector<std::string> names;
  for (const auto& key : keys()) names.push_back(key.name);
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const auto name = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
    auto fail = [&](base::Error error, const YAML::Node& node) {
      error.where = place(path, node.Mark());
      return base::Status(std::move(error));
    };
    if (!seen.insert(name).second) return fail(bad("key \"" + name + "\" is given twice"), entry.first);
    const Key* known = nullptr;
    for (const auto& key : keys())
      if (key.name == name) known = &key;
    if (known == nullptr) {
      const auto near = base::nearest(name, names);
      return fail(bad("unknown key \"" + name + "\"; " +
                      (near ? "did you mean \"" + *near + "\"?" : "known are " + base::join_names(names))),
                  entry.first);
    }
    if (!entry.second.IsScalar()) return fail(bad("\"" + name + "\" is a single value"), entry.second);
    if (auto applied = known->apply(entry.second.Scalar(), config); !applied)
      return fail(applied.error(), entry.second);
  }
  return base::ok();
}

}  // namespace

base::Expected<Config> load(const std::string& path, bool required) {
  Config config;
  if (path.empty() || (!required && ::access(path.c_str(), F_OK) != 0)) return config;
  const auto text = base::read_file(path);
  if (!text) return base::Error{base::ErrorCode::bad_input, text.error().message, {}};
  try {
    const auto root = YAML::Load(*text);
    if (root.IsNull()) return config;
    if (!root.IsMap()) return base::Error{base::ErrorCode::bad_input, "expected a mapping of settings", {path, 1, 1}};
    if (auto applied = apply(root, path, config); !applied) return applied.error();
  } catch (const YAML::Exception& error) {
    return base::Error{base::ErrorCode::bad_input, "not YAML: " + error.msg, place(path, error.mark)};
  }
  return config;
}

std::string default_path() {
  if (const auto* base = std::getenv("XDG_CONFIG_HOME"); base != nullptr && *base != '\0')
    return std::string(base) + "/leafcutter/config.yaml";
  if (const auto* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.config/leafcutter/config.yaml";
  return {};
}

unsigned effective_slots(unsigned slots) {
  if (slots != 0) return slots;
  const auto cores = std::thread::hardware_concurrency();
  return 4 * (cores == 0 ? 1 : cores);
}

}  // namespace leafcutter::config
