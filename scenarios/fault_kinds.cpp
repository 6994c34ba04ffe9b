#include "scenarios/fault_kinds.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "scenarios/error_numbers.hpp"
#include "scenarios/link_rule.hpp"
#include "scenarios/rule.hpp"
#include "scenarios/rule_terms.hpp"

namespace leafcutter::scenarios {
namespace {

using Type = FaultParameter::Type;

constexpr int last_error = 4095;  // the kernel's MAX_ERRNO

std::string_view type_name(Type type) {
  switch (type) {
    case Type::duration: return "duration";
    case Type::signed_duration: return "duration, also a negative one";
    case Type::error_name: return "error name";
    case Type::count: return "count";
    case Type::event: return "event pattern";
    case Type::word: return "word";
    case Type::decimal: return "number";
    case Type::names: return "services";
  }
  return "?";
}

base::Error bad(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

base::Status check_duration(const std::string& where, const Value& value) {
  if (!value.is_string()) return bad(where + "expected a duration such as 50ms");
  const auto duration = base::parse_duration(value.get<std::string>());
  if (!duration) return bad(where + duration.error().message);
  if (duration->count() == 0) return bad(where + "0s would change nothing");
  if (*duration > std::chrono::hours(1)) return bad(where + "more than 1h");
  return base::ok();
}

base::Status check_error_name(const std::string& where, const Value& value) {
  if (!value.is_string()) return bad(where + "expected an error name such as EIO");
  const auto name = value.get<std::string>();
  if (error_number(name) != 0) return base::ok();
  const auto near = base::nearest(name, error_names());
  return bad(where + "unknown error \"" + name + "\"" + (near ? "; did you mean \"" + *near + "\"?" : ""));
}

/// "stall or drop".
std::string alternatives(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

base::Status check_word(const std::string& where, const FaultParameter& parameter, const Value& value) {
  const auto& words = parameter.words;
  const auto word = value.is_string() ? value.get<std::string>() : value.dump();
  if (std::find(words.begin(), words.end(), word) != words.end()) return base::ok();
  return bad(where + "expected " + alternatives(words) + ", found \"" + word + "\"");
}

/// "0.25" of 250'000 millionths.
std::string decimal_text(std::uint64_t millionths) {
  auto fraction = std::to_string(1'000'000 + millionths % 1'000'000).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return std::to_string(millionths / 1'000'000) + (fraction.empty() ? "" : "." + fraction);
}

base::Status check_decimal(const std::string& where, const FaultParameter& parameter, const Value& value) {
  const auto number = value.is_string() ? parse_millionths(value.get<std::string>()) : std::nullopt;
  if (number && *number >= parameter.least && *number <= parameter.most) return base::ok();
  return bad(where + "expected a number from " + decimal_text(parameter.least) + " to " + decimal_text(parameter.most) +
             ", no finer than a millionth" + (value.is_string() ? ", found \"" + value.get<std::string>() + "\"" : ""));
}

/// What the columns of the page say of a parameter.
std::string parameter_text(const FaultParameter& parameter) {
  const auto type =
      parameter.type == Type::word ? alternatives(parameter.words) : std::string(type_name(parameter.type));
  return "`" + parameter.name + "` (" + type + "): " + parameter.about;
}

}  // namespace

const FaultKind* fault_kind(std::string_view name) {
  for (const auto& kind : fault_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

base::Status check_param(const FaultKind& kind, const FaultParameter& parameter, const Value& value) {
  const auto where = "parameter \"" + parameter.name + "\" of fault \"" + kind.name + "\": ";
  switch (parameter.type) {
    case Type::duration: return check_duration(where, value);
    case Type::signed_duration: {
      const auto offset = value.is_string() ? parse_offset(value.get<std::string>()) : std::nullopt;
      if (!offset) return bad(where + "expected a duration such as 5m or -5m");
      if (offset->count() == 0) return bad(where + "0s would change nothing");
      if (std::chrono::abs(*offset) > std::chrono::hours(24 * 366 * 100)) return bad(where + "more than 100 years");
      return base::ok();
    }
    case Type::error_name: return check_error_name(where, value);
    case Type::count:
      // A document's whole numbers are signed.
      if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) ||
          value.get<std::uint64_t>() < parameter.least || value.get<std::uint64_t>() > parameter.most)
        return bad(where + "expected a whole number from " + std::to_string(parameter.least) +
                   (parameter.most < FaultParameter().most ? " to " + std::to_string(parameter.most) : ""));
      return base::ok();
    case Type::event:
      if (!value.is_string() || value.get<std::string>().empty())
        return bad(where + "expected an event pattern such as \"reply from=shop status=201\"");
      return base::ok();
    case Type::word: return check_word(where, parameter, value);
    case Type::decimal: return check_decimal(where, parameter, value);
    case Type::names:
      if (!value.is_array() || value.empty() ||
          !std::all_of(value.begin(), value.end(), [](const Value& one) { return one.is_string(); }))
        return bad(where + "expected a list of services");
      return base::ok();
  }
  return base::ok();
}

base::Status check_params(const FaultKind& kind, const Value& params) {
  if (!params.is_object()) return bad("the parameters of fault \"" + kind.name + "\" are a mapping");
  std::vector<std::string> known;
  for (const auto& parameter : kind.parameters) known.push_back(parameter.name);
  for (const auto& [given, value] : params.items()) {
    const auto found = std::find_if(kind.parameters.begin(), kind.parameters.end(),
                                    [&, name = given](const FaultParameter& p) { return p.name == name; });
    if (found == kind.parameters.end()) {
      const auto near = base::nearest(given, known);
      return bad("fault \"" + kind.name + "\" has no parameter \"" + given + "\"" +
                 (near            ? "; did you mean \"" + *near + "\"?"
                  : known.empty() ? "; it has none"
                                  : "; it has " + base::join_names(known)));
    }
    if (auto checked = check_param(kind, *found, value); !checked) return checked;
  }
  for (const auto& parameter : kind.parameters)
    if (parameter.required && !params.contains(parameter.name))
      return bad("fault \"" + kind.name + "\" needs \"" + parameter.name + "\": " + parameter.about);
  if (!kind.some_of.empty() && std::none_of(kind.some_of.begin(), kind.some_of.end(),
                                            [&](const std::string& name) { return params.contains(name); }))
    return bad("fault \"" + kind.name + "\" needs " + alternatives(kind.some_of) + ", or several of them");
  if (kind.refusal != nullptr)
    if (const auto wrong = kind.refusal(params); !wrong.empty()) return bad("fault \"" + kind.name + "\": " + wrong);
  return base::ok();
}

bool strikes_stream(const FaultKind& kind, const Value& params) {
  return kind.stream || std::any_of(kind.parameters.begin(), kind.parameters.end(), [&](const FaultParameter& one) {
           return one.of_stream && params.contains(one.name);
         });
}

std::optional<std::uint64_t> parse_millionths(std::string_view text) { return rules::decimal_in(text, 6); }

std::optional<std::chrono::nanoseconds> parse_offset(std::string_view text) {
  const bool back = text.starts_with('-');
  const auto duration = base::parse_duration(back ? text.substr(1) : text);
  if (!duration) return std::nullopt;
  return back ? -*duration : *duration;
}

int error_number(std::string_view name) {
  for (const auto& entry : error_numbers)
    if (entry.name == name) return entry.number;
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() && number > 0 && number <= last_error ? number : 0;
}

std::string error_name(int number) {
  for (const auto& entry : error_numbers)
    if (entry.number == number) return std::string(entry.name);
  return std::to_string(number);
}

const std::vector<std::string>& error_names() {
  static const auto names = [] {
    std::vector<std::string> list;
    for (const auto& entry : error_numbers) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

std::string faults_page() {
  std::string out =
      "# Faults\n\nEvery kind of fault that a scenario can ask for, what proves that it struck, and how it ends. "
      "Generated from the "
      "one definition in\n`scenarios/fault_kinds.cpp`; `leafcutter faults` prints it.\n\n"
      "| fault | what happens | strikes at | parameters | evidence in `fault.fired` | undone | needs |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const auto& kind : fault_kinds()) {
    std::string parameters;
    for (const auto& parameter : kind.parameters)
      parameters += (parameters.empty() ? "" : "; ") + parameter_text(parameter);
    auto operations = kind.mechanism == Mechanism::syscall && kind.operations.size() == syscall_families().size()
                          ? "every syscall family"
                          : base::join_names(kind.operations);
    if (kind.http_only) operations += " (HTTP ports)";
    if (kind.lasting) operations += "; from there on";
    out += "| `" + kind.name + "` | " + kind.about + " | " + operations + " | " +
           (parameters.empty() ? "none" : parameters) + " | " + kind.evidence + " | " + kind.undo + " | " +
           kind.capability + " |\n";
  }
  out +=
      "\n## Syscall families\n\nA family acts on one class of objects only: `write` never strikes a socket, `send` "
      "never strikes a file.\n\n"
      "| family | object | what it is | calls |\n|---|---|---|---|\n";
  for (const auto& family : syscall_families())
    out += "| `" + family.name + "` | " + family.object + " | " + family.about + " | " +
           base::join_names(family.calls) + " |\n";
  out +=
      "\n## How faults strike a system call\n\n"
      "- **What cannot be found out is not struck.** When the file, the peer or a size that a rule asks for cannot be "
      "read "
      "from the task, the call runs, and an\n  `unresolved` event says so.\n"
      "- **Several at one call.** Everything that makes a call wait (`delay`, `slow`, `hold`, `pause-at`) happens one "
      "after "
      "the other. Then the first fault of the plan\n  that can end the call does. Those behind it did not strike: they "
      "are "
      "not fired, and the call's event names them.\n"
      "- **A call that a fault cannot strike** is past: a planned occurrence of `short` or `torn` whose call carries "
      "no more "
      "bytes than it is to be cut to, of `corrupt` whose\n  read ends before the byte, of `skip` that meets no sleep, "
      "does "
      "not fire later either, and the call's event says why.\n"
      "- **Reads and receives** that are cut short, made wrong or slowed wait for their bytes first, so that it is "
      "known how "
      "many there are. Of calls that carry several messages the\n  first is carried. Calls with control data "
      "(descriptors "
      "that are passed) are not cut.\n"
      "- **`no-space`** counts from where it strikes first, for the whole data folder (for a rule with a `path`: for "
      "what "
      "has such a path), also after restarts. Growth of files counts, not\n  blocks: overwriting uses nothing; a new "
      "name "
      "uses no bytes and fails when none are left; shrinking, removing a last name and renaming over a file give back. "
      "A\n  "
      "write that fits in part is carried out in part, and the next one fails. Stores to mapped files are not seen.\n"
      "- **`slow`** lets one call begin when the one before has ended, however short each is. A call without bytes is "
      "not "
      "held.\n";
  return out + links_section() + rules_section() + link_rules_section();
}

}  // namespace leafcutter::scenarios
