#include "scenarios/aim.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/random.hpp"
#include "scenarios/words.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr std::uint32_t certain = 1'000'000;

struct NamedFlag {
  std::string_view name;
  std::uint64_t bits;
};

constexpr std::array named_flags = {
    NamedFlag{"O_WRONLY", O_WRONLY},
    NamedFlag{"O_RDWR", O_RDWR},
    NamedFlag{"O_CREAT", O_CREAT},
    NamedFlag{"O_EXCL", O_EXCL},
    NamedFlag{"O_TRUNC", O_TRUNC},
    NamedFlag{"O_APPEND", O_APPEND},
    NamedFlag{"O_NONBLOCK", O_NONBLOCK},
    NamedFlag{"O_DSYNC", O_DSYNC},
    NamedFlag{"O_SYNC", O_SYNC},
    NamedFlag{"O_DIRECT", O_DIRECT},
    NamedFlag{"O_DIRECTORY", O_DIRECTORY},
    NamedFlag{"O_NOFOLLOW", O_NOFOLLOW},
    NamedFlag{"O_CLOEXEC", O_CLOEXEC},
    NamedFlag{"O_TMPFILE", O_TMPFILE},
    NamedFlag{"MSG_OOB", MSG_OOB},
    NamedFlag{"MSG_PEEK", MSG_PEEK},
    NamedFlag{"MSG_DONTWAIT", MSG_DONTWAIT},
    NamedFlag{"MSG_WAITALL", MSG_WAITALL},
    NamedFlag{"MSG_NOSIGNAL", MSG_NOSIGNAL},
    NamedFlag{"MSG_MORE", MSG_MORE},
};

base::Error bad_aim(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

bool glob_holds(const std::string& glob, std::string_view text) {
  // The program never calls setlocale, so that fnmatch compares bytes.
  return ::fnmatch(glob.c_str(), std::string(text).c_str(), 0) == 0;
}

bool path_holds(const std::string& glob, std::string_view path, std::string_view data_folder) {
  if (path.empty()) return false;
  if (glob.front() == '/' || glob.front() == '*') return glob_holds(glob, path);
  return !data_folder.empty() && glob_holds(std::string(data_folder) + (data_folder == "/" ? "" : "/") + glob, path);
}

/// The brackets of an IPv6 address, "[::1]:80", are none of a glob's.
std::string address_glob(const std::string& glob) {
  const auto end = glob.find(']');
  const auto inner = std::string_view(glob).substr(0, end).substr(glob.empty() ? 0 : 1);
  if (!glob.starts_with('[') || end == std::string::npos || inner.find(':') == std::string_view::npos ||
      inner.find_first_not_of("0123456789abcdefABCDEF:.*?") != std::string_view::npos)
    return glob;
  return "\\[" + std::string(inner) + "\\]" + glob.substr(end + 1);
}

bool peer_holds(const std::string& glob, std::string_view peer, std::string_view address) {
  if (!peer.empty() && (glob_holds(glob, peer) || glob_holds(glob, peer.substr(0, peer.find(':'))))) return true;
  return !address.empty() && glob_holds(address_glob(glob), address);
}

std::string range_text(const Range& range) {
  if (range.at_least && range.at_least == range.at_most) return std::to_string(*range.at_least);
  return (range.at_least ? std::to_string(*range.at_least) : "") + ".." +
         (range.at_most ? std::to_string(*range.at_most) : "");
}

Value range_value(const Range& range) {
  Value out = Value::object();
  if (range.at_least) out["at-least"] = *range.at_least;
  if (range.at_most) out["at-most"] = *range.at_most;
  return out;
}

base::Expected<Range> range_from(const Value& value) {
  if (!value.is_object()) return bad_aim("a range is an object with at-least and at-most");
  Range range;
  for (const auto& [name, number] : value.items()) {
    if (!number.is_number_unsigned() || (name != "at-least" && name != "at-most"))
      return bad_aim("a range has at-least and at-most, whole numbers");
    (name == "at-least" ? range.at_least : range.at_most) = number.get<std::uint64_t>();
  }
  return range;
}

constexpr std::array which_names = {
    std::pair{Occurrences::Which::nth, "nth"}, std::pair{Occurrences::Which::first, "first"},
    std::pair{Occurrences::Which::every, "every"}, std::pair{Occurrences::Which::from, "from"}};

}  // namespace

const std::vector<std::string>& object_classes() {
  static const std::vector<std::string> list = {"file", "directory", "socket-tcp", "socket-udp", "socket-unix",
                                                "pipe", "tty",       "eventfd",    "process",    "other"};
  return list;
}

bool Occurrences::include(std::uint64_t ordinal) const {
  switch (which) {
    case Which::nth: return ordinal == n;
    case Which::first: return ordinal <= n;
    case Which::every: return ordinal % n == 0;
    case Which::from: return ordinal >= n;
  }
  return false;
}

std::string Occurrences::text() const {
  if (which == Which::nth) return "#" + std::to_string(n);
  if (which == Which::from && n == 1) return "";
  const auto* name =
      std::find_if(which_names.begin(), which_names.end(), [&](const auto& p) { return p.first == which; });
  return std::string(name->second) + " " + std::to_string(n);
}

bool Aim::selects(const CallFacts& facts, std::string_view data_folder) const {
  if (!call.empty() && call != facts.call) return false;
  if (!object.empty() && object != facts.object) return false;
  if (!path.empty() && !path_holds(path, facts.path, data_folder)) return false;
  if (!peer.empty() && !peer_holds(peer, facts.peer, facts.address)) return false;
  if (size && (!facts.size || !size->holds(*facts.size))) return false;
  if (offset && (!facts.offset || !offset->holds(*facts.offset))) return false;
  return std::all_of(flags.begin(), flags.end(), [&](const auto& name) {
    const auto bits = flag_bits(name);
    return bits != 0 && (facts.flags & bits) == bits;
  });
}

bool Aim::drawn(std::uint64_t ordinal) const {
  if (per_million >= certain) return true;
  // One stream a call: no draw depends on how many there were before.
  return base::Stream(seed, "probability", ordinal).below(certain) < per_million;
}

std::string Aim::text() const {
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : " ") + part;
  };
  if (!call.empty()) add("call=" + call);
  if (!object.empty()) add("object=" + object);
  if (!path.empty()) add("path=" + quoted_word(path));
  if (!peer.empty()) add("peer=" + quoted_word(peer));
  if (size) add("size=" + range_text(*size));
  if (offset) add("offset=" + range_text(*offset));
  for (std::size_t i = 0; i < flags.size(); ++i)
    out += (i == 0 ? (out.empty() ? "flags=" : " flags=") : "|") + flags[i];
  if (message) add("message=" + range_text(*message));
  if (after_bytes > 0) add("after-bytes=" + std::to_string(after_bytes));
  if (!after.empty()) add("after=" + quoted_word(after));
  if (per_million < certain) {
    auto digits = std::to_string(certain + per_million).substr(1);  // six digits after the point
    digits.erase(digits.find_last_not_of('0') + 1);
    add("probability=0" + (digits.empty() ? "" : "." + digits));
  }
  add(occurrences.text());
  if (uncounted) add("uncounted");
  return out;
}

std::uint64_t flag_bits(std::string_view name) {
  for (const auto& flag : named_flags)
    if (flag.name == name) return flag.bits;
  return 0;
}

const std::vector<std::string>& flag_names() {
  static const auto names = [] {
    std::vector<std::string> list;
    for (const auto& flag : named_flags) list.emplace_back(flag.name);
    return list;
  }();
  return names;
}

Value to_value(const Aim& aim) {
  Value out = Value::object();
  for (const auto& [name, text] : {std::pair{"call", &aim.call},
                                   {"object", &aim.object},
                                   {"path", &aim.path},
                                   {"peer", &aim.peer},
                                   {"after", &aim.after}})
    if (!text->empty()) out[name] = *text;
  if (aim.size) out["size"] = range_value(*aim.size);
  if (aim.offset) out["offset"] = range_value(*aim.offset);
  if (aim.message) out["message"] = range_value(*aim.message);
  if (aim.after_bytes > 0) out["after-bytes"] = aim.after_bytes;
  if (!aim.flags.empty()) out["flags"] = aim.flags;
  for (const auto& [which, name] : which_names)
    if (aim.occurrences.which == which) out["occurrences"] = {{name, aim.occurrences.n}};
  if (aim.per_million < certain) {
    out["per-million"] = aim.per_million;
    out["seed"] = aim.seed;
  }
  if (aim.uncounted) out["uncounted"] = true;
  return out;
}

base::Expected<Aim> aim_from(const Value& value) {
  if (!value.is_object()) return bad_aim("an aim is an object");
  Aim aim;
  for (const auto& [key, given] : value.items()) {
    std::string* text = key == "call"     ? &aim.call
                        : key == "object" ? &aim.object
                        : key == "path"   ? &aim.path
                        : key == "peer"   ? &aim.peer
                        : key == "after"  ? &aim.after
                                          : nullptr;
    if (text != nullptr) {
      if (!given.is_string()) return bad_aim("an aim's " + key + " is text");
      *text = given.get<std::string>();
    } else if (key == "size" || key == "offset" || key == "message") {
      auto range = range_from(given);
      if (!range) return range.error();
      (key == "size" ? aim.size : key == "offset" ? aim.offset : aim.message) = *range;
    } else if (key == "flags") {
      if (!given.is_array()) return bad_aim("an aim's flags are a list of names");
      for (const auto& flag : given) {
        if (!flag.is_string() || flag_bits(flag.get<std::string>()) == 0)
          return bad_aim("an aim's flags are known names");
        aim.flags.push_back(flag.get<std::string>());
      }
    } else if (key == "occurrences") {
      const auto number = given.is_object() && given.size() == 1 ? given.begin().value() : Value();
      const auto* which = number.is_number_unsigned() && number.get<std::uint64_t>() > 0 &&
                                  number.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max()
                              ? std::find_if(which_names.begin(), which_names.end(),
                                             [&](const auto& p) { return given.begin().key() == p.second; })
                              : which_names.end();
      if (which == which_names.end())
        return bad_aim("an aim's occurrences are one of nth, first, every and from, with a number from 1");
      aim.occurrences = {which->first, number.get<std::uint32_t>()};
    } else if (key == "per-million" || key == "seed" || key == "after-bytes") {
      if (!given.is_number_unsigned()) return bad_aim("an aim's " + key + " is a whole number");
      if (key == "seed")
        aim.seed = given.get<std::uint64_t>();
      else if (key == "after-bytes")
        aim.after_bytes = given.get<std::uint64_t>();
      else
        aim.per_million = static_cast<std::uint32_t>(std::min<std::uint64_t>(given.get<std::uint64_t>(), certain));
    } else if (key == "uncounted") {
      if (!given.is_boolean()) return bad_aim("an aim's uncounted is true or false");
      aim.uncounted = given.get<bool>();
    } else {
      return bad_aim("an aim has no \"" + key + "\"");
    }
  }
  return aim;
}

}  // namespace leafcutter::scenarios
