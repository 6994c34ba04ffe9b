// `leafcutter exec` as tests call it, and its trace.
#pragma once

#include <chrono>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "support.hpp"

namespace acceptance {

using Words = std::vector<std::string>;

/// `leafcutter exec OPTIONS -- COMMAND` in the folder.
inline Outcome exec(const Folder& folder, Words options, const Words& command) {
  options.insert(options.begin(), "exec");
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return leafcutter(options, folder.path(), std::chrono::seconds(60));
}

inline Outcome shell(const Folder& folder, const Words& options, const std::string& script) {
  return exec(folder, options, {"sh", "-c", script});
}

inline Words rules(std::initializer_list<const char*> texts) {
  Words options;
  for (const auto* text : texts) options.insert(options.end(), {"--fault", text});
  return options;
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<Json> trace_of(const std::string& path) {
  std::vector<Json> events;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) events.push_back(Json::parse(line));
  return events;
}

inline std::vector<Json> of_kind(const std::vector<Json>& events, const std::string& kind) {
  std::vector<Json> found;
  for (const auto& event : events)
    if (event["kind"] == kind) found.push_back(event);
  return found;
}

}  // namespace acceptance
