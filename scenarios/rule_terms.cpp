#include "scenarios/rule_terms.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "base/text.hpp"
#include "scenarios/matcher_text.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::scenarios::rules {
namespace {

constexpr std::uint32_t always_millionths = 1'000'000;

bool one_of_names(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Families whose calls carry or ask for a number of bytes.
bool has_size(const SyscallFamily& family) {
  return one_of_names(family.name, {"read", "write", "send", "receive", "allocate", "truncate", "random"});
}

bool has_offset(const SyscallFamily& family) { return one_of_names(family.name, {"read", "write", "allocate"}); }

bool has_flags(const SyscallFamily& family, std::string_view flag) {
  return flag.starts_with("O_") ? family.name == "open" : one_of_names(family.name, {"send", "receive"});
}

/// The family that the same calls belong to when they act on the other kind of object; empty: none does.
std::string counterpart(const SyscallFamily& family, std::string_view object) {
  const bool socket = object.starts_with("socket-");
  if (family.name == "read" && socket) return "receive";
  if (family.name == "write" && socket) return "send";
  if (family.name == "receive" && !socket && object != "process") return "read";
  if (family.name == "send" && !socket && object != "process") return "write";
  return "";
}

}  // namespace

std::optional<std::uint64_t> decimal_in(std::string_view text, std::size_t shift) {
  const auto point = text.find('.');
  auto digits = std::string(text.substr(0, point));
  auto fraction = point == std::string_view::npos ? std::string() : std::string(text.substr(point + 1));
  if (digits.empty() && fraction.empty()) return std::nullopt;
  while (fraction.size() > shift && fraction.back() == '0') fraction.pop_back();
  if (fraction.size() > shift || digits.size() > 9) return std::nullopt;
  digits += fraction + std::string(shift - fraction.size(), '0');
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

const std::vector<RuleKey>& rule_keys() {
  static const std::vector<RuleKey> list = {
      {"call", "only this call of the family: `write=EIO call=pwrite64`"},
      {"object", "only this class of object; without it, what the family means by itself"},
      {"path",
       "only files that match the glob, in which `*` crosses `/`; one that begins with neither `/` nor `*` is "
       "below the data folder (with `exec`: the working folder)"},
      {"peer",
       "only sockets to (or from) this service, `service:port` or address (`127.0.0.1:80`, `[::1]:80`, "
       "`unix:/run/x`); a glob"},
      {"size", "only calls about so many bytes: `100`, `1..100`, `4k..`, `..100`"},
      {"offset", "only calls at this place in the file, in bytes; the same forms"},
      {"flags", "only calls that have all of these flags: `O_CREAT|O_TRUNC`, `MSG_MORE`"},
      {"after",
       "only once such an event was seen: `after=\"reply from=shop status=2xx\"`; values are exact, or "
       "`/regular expressions/`"},
      {"probability",
       "each of the calls that the rest selects with this probability, `0.25` or `25%`; which ones is a "
       "function of the seed"},
      {"until", "of `hold`: the event that releases the call"},
      {"service", "in a scenario, where `on` is a list: only this service"},
  };
  return list;
}

std::optional<std::uint64_t> size_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  if (end == last) return number;
  if (end + 1 != last) return std::nullopt;
  const int shift = *end == 'k' || *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  if (shift == 0 || number > (UINT64_MAX >> shift)) return std::nullopt;
  return number << shift;
}

std::optional<Range> size_range_in(std::string_view text) {
  Range range;
  const auto dots = text.find("..");
  const auto low = text.substr(0, dots);
  const auto high = dots == std::string_view::npos ? low : text.substr(dots + 2);
  if (!low.empty() && !(range.at_least = size_in(low))) return std::nullopt;
  if (!high.empty() && !(range.at_most = size_in(high))) return std::nullopt;
  if (low.empty() && high.empty()) return std::nullopt;
  if (range.at_least && range.at_most && *range.at_least > *range.at_most) return std::nullopt;
  return range;
}

base::Expected<std::uint32_t> probability_in(std::string_view text, bool may_be_zero) {
  const auto bad = [](const std::string& message) { return base::Error{base::ErrorCode::bad_input, message, {}}; };
  const bool percent = text.ends_with('%');
  const auto number = decimal_in(percent ? text.substr(0, text.size() - 1) : text, percent ? 4 : 6);
  const auto found = "found \"" + std::string(text) + "\"";
  if (!number) return bad("expected a probability such as 0.25 or 25%, no finer than a millionth; " + found);
  if (*number > always_millionths) return bad("a probability is at most 1 (or 100%); " + found);
  if (*number == 0 && !may_be_zero) return bad("a probability of 0 would never strike");
  return static_cast<std::uint32_t>(*number);
}

std::vector<const SyscallFamily*> families_named(const std::string& name) {
  if (const auto* family = syscall_family(name); family != nullptr) return {family};
  // By its own name a call is about the object that its bytes go to.
  const auto has = [&](const std::vector<std::string>& calls) {
    return std::find(calls.begin(), calls.end(), name) != calls.end();
  };
  std::vector<const SyscallFamily*> found;
  for (const auto& family : syscall_families())
    if (has(family.calls) && !has(family.sources)) found.push_back(&family);
  return found;
}

std::string object_refusal(const SyscallFamily& family, const std::string& object) {
  if (const auto& known = object_classes(); std::find(known.begin(), known.end(), object) == known.end())
    return "unknown class of objects \"" + object + "\"" + hint(object, known);
  const auto classes = classes_of(family);
  if (std::find(classes.begin(), classes.end(), object) == classes.end()) {
    const auto instead = counterpart(family, object);
    return "\"" + family.name + "\" never acts on \"" + object + "\"" +
           (instead.empty() ? "; it acts on " + base::join_names(classes) : "; use \"" + instead + "\"");
  }
  // Pipes, terminals and counters can be read and written and, but for the last, opened; nothing else can be done here.
  const bool stream = one_of_names(object, {"pipe", "tty", "eventfd"});
  if (stream && !one_of_names(family.name, {"read", "write"}) && (family.name != "open" || object == "eventfd"))
    return "\"" + family.name + "\" never acts on \"" + object + "\"";
  return "";
}

std::string key_refusal(const SyscallFamily& family, const std::string& key) {
  const auto name = "\"" + family.name + "\" ";
  if (key == "path" && family.object == "socket")
    return name + "acts on sockets, which have no path; use peer= (a unix socket is peer=unix:/run/x)";
  if (key == "path" && family.object != "file") return name + "acts on no file and has no path";
  if (key == "peer" && family.object != "socket") return name + "acts on no socket and has no peer";
  if (key == "size" && !has_size(family)) return name + "carries no number of bytes";
  if (key == "offset" && !has_offset(family)) return name + "is at no place in a file";
  if (key == "flags" && !has_flags(family, "O_") && !has_flags(family, "MSG_"))
    return name + "has no flags to select by; open, send and receive have";
  if (key == "object" && family.object == "process") return name + "acts on no object";
  return "";
}

std::string flag_refusal(const SyscallFamily& family, const std::string& flag) {
  if (has_flags(family, flag) && flag_bits(flag) != 0) return "";
  if (flag_bits(flag) == 0) {
    std::vector<std::string> known;
    for (const auto& name : flag_names())
      if (has_flags(family, name)) known.push_back(name);
    return "unknown flag \"" + flag + "\"" + hint(flag, known);
  }
  return "\"" + flag + "\" is a flag of " + (flag.starts_with("O_") ? "open" : "send and receive") + ", not of \"" +
         family.name + "\"";
}

std::string kind_refusal(const SyscallFamily& family, const FaultKind& kind) {
  const auto& strikes = kind.operations;
  if (std::find(strikes.begin(), strikes.end(), family.name) != strikes.end()) return "";
  auto refusal = "\"" + kind.name + "\" strikes " + base::join_names(strikes) + ", never \"" + family.name + "\"";
  if (kind.name.ends_with("-after"))
    refusal += "; use " + kind.name.substr(0, kind.name.size() - std::string_view("after").size()) + "before";
  return refusal;
}

bool strikes_after_events(const FaultKind& kind) {
  return kind.mechanism == Mechanism::process && kind.operations == std::vector<std::string>{"step"};
}

std::optional<std::string> near_call(const std::string& word, const std::vector<std::string>& known) {
  const auto longer =
      std::find_if(known.begin(), known.end(), [&](const auto& name) { return name.starts_with(word); });
  return word.size() >= 4 && longer != known.end() ? *longer : near_name(word, known);
}

std::string hint(const std::string& word, const std::vector<std::string>& known) {
  if (const auto near = near_name(word, known)) return "; did you mean \"" + *near + "\"?";
  return known.size() <= 20 ? "; known: " + base::join_names(known) : "";
}

}  // namespace leafcutter::scenarios::rules

namespace leafcutter::scenarios {

std::string rules_section() {
  std::string out =
      "\n## Rules\n\n"
      "A rule is a fault of system calls on one line, for `leafcutter exec --fault` and for `rules` in a scenario:\n\n"
      "```\nCALL=EFFECT[:ARGUMENT[,ARGUMENT]] [key=value]... [#n | first n | every n | from n] [uncounted]\n```\n\n"
      "- `CALL` is a family or one of its calls (`pwrite64=EIO` is `write=EIO call=pwrite64`). A call of two families, "
      "such as `writev`, needs\n  `object`, `path` or `peer` to tell which is meant; where a name is both, the family "
      "wins.\n"
      "- `sendfile`, `copy_file_range` and `splice` move bytes from one object to another: `read` and `receive` are "
      "about "
      "the one that they\n  come from, `write` and `send` about the one that they go to. By its own name such a call "
      "means "
      "the latter; `read=EIO call=splice`\n  means the former. What strikes where the bytes come from strikes first.\n"
      "- `EFFECT` is the name or number of an error (`fsync=EIO`; `connect=ETIMEDOUT:2s`: two seconds late) or a fault "
      "of system calls from\n  the table above, its parameters after a colon in the table's order: `write=short:100`, "
      "`write=no-space:1M,EDQUOT`,\n  `read=corrupt:17,3`. Sizes may end in `k`, `M` or `G` (of 1024). `crash` is "
      "`crash-before`, `power-loss` is `power-loss-before`.\n"
      "- Which of the calls that the keys select, counted in the program's own order: the n-th alone (`#2`), the first "
      "n, every n-th, or all\n  from the n-th on; all of them when nothing is said.\n"
      "- `uncounted`: the kernel answers by itself. Such a rule costs nothing, but nobody can say whether it struck; "
      "refused where the\n  kernel cannot decide alone.\n"
      "- Values with blanks stand in double quotes, `\\\"` and `\\\\` within them. In YAML a rule with a `#` needs "
      "quotes of YAML's, too.\n"
      "- Rules compose: each that selects a call is asked, in the order written.\n"
      "- In a scenario, a fault of a whole service that can strike before a step can strike after an event instead: it "
      "stands by itself,\n  with `after` (and `service`), and strikes once. `crash after=\"reply from=shop "
      "status=2xx\"`, `pause:2s after=\"ready service=broker\"`,\n  `restart-storm:3 after=...`, `power-loss "
      "after=...`.\n\n"
      "| key | selects |\n|---|---|\n";
  for (const auto& key : rules::rule_keys()) {
    auto about = key.about;
    for (std::size_t bar = about.find('|'); bar != std::string::npos; bar = about.find('|', bar + 2))
      about.insert(bar, "\\");
    out += "| `" + key.name + "` | " + about + " |\n";
  }
  out += "\nClasses of objects: " + base::join_names(object_classes()) + ".\n";
  return out;
}

}  // namespace leafcutter::scenarios
