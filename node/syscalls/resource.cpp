#include "node/syscalls/resource.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {
namespace {

constexpr std::size_t random_length = 6;  ///< mkstemp(3) draws six characters; fewer are too few to tell

bool digit(char c) { return c >= '0' && c <= '9'; }
bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool alphanumeric(char c) { return digit(c) || lower(c) || upper(c); }
bool hexadecimal(char c) { return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::size_t kind_changes(std::string_view token) {
  std::size_t changes = 0;
  for (std::size_t i = 1; i < token.size(); ++i) changes += digit(token[i]) != digit(token[i - 1]) ? 1 : 0;
  return changes;
}

bool mixed_case(std::string_view token) {
  return std::ranges::any_of(token, lower) && std::ranges::any_of(token, upper);
}

/// "orders", "WriteAheadLog", "walLog": an optional lower-case word, then capitalized ones of at least three letters.
bool reads_as_words(std::string_view letters) {
  std::size_t i = 0;
  while (i < letters.size() && lower(letters[i])) ++i;
  if (i > 0 && i < 3 && i < letters.size()) return false;
  while (i < letters.size()) {
    const auto begin = i++;
    while (i < letters.size() && lower(letters[i])) ++i;
    if (!upper(letters[begin]) || i - begin < 3) return false;
  }
  return true;
}

/// Whether a run of letters and digits looks drawn rather than named.
bool looks_random(std::string_view token, bool after_separator) {
  if (token.size() < random_length) return false;
  const auto digits = std::ranges::any_of(token, digit);
  if (digits && kind_changes(token) >= 2) return true;
  auto letters = token;
  while (!letters.empty() && digit(letters.back())) letters.remove_suffix(1);
  if (digits && letters.empty()) return false;  // a number, which becomes "#" anyway
  return (digits || after_separator) && mixed_case(token) && !reads_as_words(letters);
}

std::string without_numbers(std::string_view token) {
  std::string out;
  for (const auto c : token) {
    if (!digit(c))
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

bool uuid_at(std::string_view text, std::size_t at) {
  constexpr std::string_view form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() - at < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'x' ? !hexadecimal(text[at + i]) : text[at + i] != '-') return false;
  return at + form.size() == text.size() || !alphanumeric(text[at + form.size()]);
}

/// Python's tempfile: "tmp" and eight of [a-z0-9_].
bool python_temporary(std::string_view name) {
  constexpr std::size_t length = 11;
  return name.size() == length && name.starts_with("tmp") &&
         std::ranges::all_of(name, [](char c) { return lower(c) || digit(c) || c == '_'; });
}

/// Content-addressed stores name a folder by the first digits of what is in it: "ab/cdef..." -> "#/#".
void join_hash_folders(const std::vector<std::string_view>& names, std::vector<std::string>& classes) {
  for (std::size_t i = 0; i + 1 < names.size(); ++i)
    if (names[i].size() == 2 && std::ranges::all_of(names[i], hexadecimal) && classes[i + 1] == "#") classes[i] = "#";
}

/// Of a normal path. This and normal_path() are on the way of every notified call: string views, no path objects.
std::string path_class(std::string_view path) {
  std::vector<std::string_view> names;
  std::vector<std::string> classes;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    names.push_back(path.substr(begin, end - begin));
    classes.push_back(name_class(names.back()));
    begin = end + 1;
  }
  join_hash_folders(names, classes);
  std::string out;
  for (std::size_t i = 0; i < classes.size(); ++i) out += (i > 0 ? "/" : "") + classes[i];
  return out;
}

}  // namespace

std::string name_class(std::string_view component) {
  if (python_temporary(component)) return "tmp#";
  std::string out;
  for (std::size_t i = 0; i < component.size();) {
    const auto fresh = i == 0 || !alphanumeric(component[i - 1]);
    if (fresh && uuid_at(component, i)) {
      out += '#';
      i += 36;
      continue;
    }
    auto end = i;
    while (end < component.size() && alphanumeric(component[end])) ++end;
    if (end == i) {
      out += component[i++];
      continue;
    }
    const auto token = component.substr(i, end - i);
    out += looks_random(token, i > 0) ? "#" : without_numbers(token);
    i = end;
  }
  return out;
}

namespace {

/// No component is empty, "." or "..", but for the first of an absolute path.
bool is_normal(std::string_view path) {
  if (path.empty() || path.back() == '/') return false;
  for (std::size_t begin = path.front() == '/' ? 1 : 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string normal_path(const std::string& path) {
  if (is_normal(path)) return path;
  auto normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string below(const std::string& path, const std::string& folder) {
  if (folder.empty()) return "";
  if (path == folder) return ".";
  if (folder.back() == '/') return path.starts_with(folder) ? path.substr(folder.size()) : "";
  return path.starts_with(folder) && path[folder.size()] == '/' ? path.substr(folder.size() + 1) : "";
}

std::string resource_class(const std::string& path, const std::string& data_folder,
                           const std::vector<std::string>& path_globs) {
  const auto normal = normal_path(path);
  if (!data_folder.empty() && data_folder != "/") {  // what is below the root folder is everybody's
    const auto relative = below(normal, normal_path(data_folder));
    if (!relative.empty()) return "data:" + path_class(relative);
  }
  for (const auto& glob : path_globs) {
    const bool excludes = glob.starts_with('!');
    if (::fnmatch(glob.c_str() + (excludes ? 1 : 0), normal.c_str(), 0) == 0) return excludes ? "" : path_class(normal);
  }
  return "";
}

ResourceClasses::ResourceClasses(std::string data_folder, std::vector<std::string> path_globs)
    : data_folder_(std::move(data_folder)), path_globs_(std::move(path_globs)) {}

const std::string& ResourceClasses::of(const std::string& path) {
  const auto known = known_.find(path);
  if (known != known_.end()) return known->second;
  if (known_.size() >= remembered) known_.clear();
  return known_.emplace(path, resource_class(path, data_folder_, path_globs_)).first->second;
}

}  // namespace leafcutter::node
