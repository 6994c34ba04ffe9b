// The workload: steps, their labels, and the variables that each may use.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/text.hpp"
#include "scenarios/loader/loading.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios::loading {
namespace {

constexpr std::uint64_t most_steps = 100'000;
constexpr int deepest = 8;

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// C escapes: \n \r \t \0 \\ \" \' \a \b \f \v \e, \xHH, \ooo. False at one that is none; `bad` is what was found.
bool unescape(const std::string& text, std::string& out, std::string& bad) {
  static const std::map<char, char> simple = {{'n', '\n'}, {'r', '\r'},  {'t', '\t'},  {'\\', '\\'},
                                              {'"', '"'},  {'\'', '\''}, {'a', '\a'},  {'b', '\b'},
                                              {'f', '\f'}, {'v', '\v'},  {'e', '\x1b'}};
  const auto digits = [&](std::size_t from, std::size_t most, int base) {
    std::size_t count = 0;
    while (count < most && from + count < text.size() &&
           (base == 16 ? std::isxdigit(static_cast<unsigned char>(text[from + count])) != 0
                       : text[from + count] >= '0' && text[from + count] <= '7'))
      ++count;
    return count;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const int base = next == 'x' ? 16 : 8;
    const auto from = i + (base == 16 ? 2 : 1);
    const auto count = digits(from, base == 16 ? 2 : 3, base);
    if (const auto known = simple.find(next); known != simple.end() && i + 1 < text.size()) {
      out += known->second;
      ++i;
    } else if (count > 0 && std::stoi(text.substr(from, count), nullptr, base) < 256) {
      out += static_cast<char>(std::stoi(text.substr(from, count), nullptr, base));
      i = from + count - 1;
    } else {
      bad = text.substr(i, 2);
      return false;
    }
  }
  return true;
}

class WorkloadReader {
 public:
  explicit WorkloadReader(Loading& loading) : loading_(loading) {}

  std::vector<Step> read_list(const Node& node, Scope& scope, int depth) {
    std::vector<Step> steps;
    if (!node.is_list()) return steps;
    if (depth > deepest) {
      loading_.notes.error(node, "steps are nested more than " + std::to_string(deepest) + " deep");
      return steps;
    }
    for (const auto& item : node.items)
      if (item.is_map()) steps.push_back(read(item, scope, depth));
    return steps;
  }

  static std::uint64_t executed(const std::vector<Step>& steps) {
    std::uint64_t total = 0;
    for (const auto& step : steps) {
      std::uint64_t inner = executed(step.steps);
      for (const auto& branch : step.branches) inner += executed(branch);
      total += 1 + std::min<std::uint64_t>(inner, most_steps + 1) * step.times;
      total = std::min<std::uint64_t>(total, 1'000'000'000);
    }
    return total;
  }

 private:
  Step read(const Node& node, Scope& scope, int depth) {
    Step step;
    step.label = label_of(node);
    step.where = loading_.notes.place(node);
    step.when_lua = text_of(node.find("when"));
    step.within = duration_of(node.find("within"), step.within);
    const auto* kind = kind_of(node);
    if (kind == nullptr) return step;
    const auto& value = *node.find(kind->text);
    if (kind->text == "tcp" || kind->text == "run" || kind->text == "settle" || kind->text == "repeat" ||
        kind->text == "parallel")
      read_other(node, kind->text, value, step, scope, depth);
    else
      read_request(node, kind->text, value, step, scope);
    return step;
  }

  /// The key that says what the step does, or nullptr.
  static const Node* kind_of(const Node& node) {
    const auto& kinds = shape("step").one_of;
    const auto found = std::find_if(node.keys.begin(), node.keys.end(), [&](const Node& key) {
      return std::find(kinds.begin(), kinds.end(), key.text) != kinds.end();
    });
    return found == node.keys.end() ? nullptr : &*found;
  }

  /// The user's name for the step, or what it does as it is written; in document order, numbered from the second on.
  std::string label_of(const Node& node) {
    auto label = text_of(node.find("name"));
    if (const auto* kind = kind_of(node); label.empty() && kind != nullptr) {
      const auto& value = *node.find(kind->text);
      const auto words = texts_of(&value);
      label = kind->text;
      if (kind->text == "run" && !words.empty()) label += " " + words.front();
      if (kind->text != "repeat" && value.is_scalar()) label += " " + value.text;
    }
    if (label.empty()) label = "step";
    auto unique = label;
    for (unsigned number = 2; !labels_.insert(unique).second; ++number)
      unique = label + " (" + std::to_string(number) + ")";
    return unique;
  }

  void read_request(const Node& node, const std::string& method, const Node& value, Step& step, Scope& scope) {
    step.what = Step::Do::request;
    step.method = upper(method);
    check_references(loading_, value, text_of(&value), scope);
    const auto target = resolve_target(loading_, value, true);
    step.service = target.service;
    step.port = target.port;
    step.target = target.path;
    reach(value, target);
    if (step.target.find_first_of(" \t\r\n") != std::string::npos)
      loading_.notes.error(value, "the path " + describe(value) + " holds white space; write %20 for a space");
    if (const auto* headers = node.find("headers"); headers != nullptr && headers->is_map()) {
      check_references_below(loading_, headers, scope);
      for (std::size_t i = 0; i < headers->items.size(); ++i) read_header(headers->keys[i], headers->items[i], step);
    }
    const auto* json = node.find("json");
    const auto* body = node.find("body");
    check_references_below(loading_, json, scope);
    check_references_below(loading_, body, scope);
    if (json != nullptr && body != nullptr)
      loading_.notes.error(*body, "a request has either \"json\" or \"body\", not both");
    if (json != nullptr) {
      step.body = to_json_text(*json);
      step.json_body = true;
    } else if (body != nullptr) {
      step.body = text_of(body);
    }
    step.retries = static_cast<unsigned>(number_of(node.find("retries"), 0));
    read_answer(node, "request", step, scope);
  }

  /// What would change where the header ends is refused.
  void read_header(const Node& name, const Node& value, Step& step) {
    if (name.text.find_first_of(": \t\r\n") != std::string::npos)
      loading_.notes.error(name, "a header cannot be called " + describe(name));
    if (text_of(&value).find_first_of("\r\n") != std::string::npos)
      loading_.notes.error(value, "a header's value is one line, found " + describe(value));
    step.headers[name.text] = text_of(&value);
  }

  void read_other(const Node& node, const std::string& kind, const Node& value, Step& step, Scope& scope, int depth) {
    if (kind == "tcp") {
      step.what = Step::Do::exchange;
      const auto target = resolve_target(loading_, value, false);
      step.service = target.service;
      step.port = target.port;
      reach(value, target);
      read_send(node.find("send"), step, scope);
      step.until = text_of(node.find("until"));
      read_answer(node, "exchange", step, scope);
    } else if (kind == "run") {
      step.what = Step::Do::command;
      step.command = load_command(loading_, &value, scope);
      read_answer(node, "command", step, scope);
    } else if (kind == "settle") {
      step.what = Step::Do::settle;
      step.quiet = duration_of(value.find("quiet"), step.quiet);
      step.within = duration_of(value.find("within"), step.within);
      if (step.quiet > step.within)
        loading_.notes.error(value, "\"settle\" waits " + base::format_duration(step.within) + " for " +
                                        base::format_duration(step.quiet) + " of quiet: that can never be");
    } else if (kind == "repeat") {
      read_repeat(node, value, step, scope, depth);
    } else {
      step.what = Step::Do::parallel;
      auto after = scope;
      for (const auto& branch : value.items) {
        auto own = scope;  // a branch does not see what another one saves
        step.branches.push_back(read_list(branch, own, depth + 1));
        after.variables.merge(own.variables);
      }
      scope = after;
    }
  }

  void read_repeat(const Node& node, const Node& value, Step& step, Scope& scope, int depth) {
    step.what = Step::Do::repeat;
    step.times = static_cast<unsigned>(number_of(&value, 1));
    const auto* as = node.find("as");
    const auto* body = node.find("do");
    step.as = text_of(as);
    if (body == nullptr) {
      loading_.notes.error(node, "a step with \"repeat\" lacks \"do\": the steps to repeat");
      return;
    }
    const bool fresh = step.as.empty() || scope.variables.insert(step.as).second;
    if (!fresh)
      loading_.notes.error(*as,
                           "the variable \"" + step.as + "\" has a value already; choose another name for this loop");
    step.steps = read_list(*body, scope, depth + 1);
    if (fresh && !step.as.empty()) scope.variables.erase(step.as);  // known in the loop only
  }

  void read_send(const Node* send, Step& step, const Scope& scope) {
    if (send == nullptr || !send->is_scalar()) return;
    check_references(loading_, *send, send->text, scope);
    std::string bad;
    if (!unescape(send->text, step.send, bad))
      loading_.notes.error(*send, "\"send\": there is no escape \"" + bad + "\"; a backslash is written \"\\\\\"");
  }

  void read_answer(const Node& node, const char* kind, Step& step, Scope& scope) {
    if (const auto* expect = node.find("expect"); expect != nullptr && expect->is_map()) {
      const auto* reply = expect->find("reply");
      step.reply_required = reply != nullptr && reply->is_scalar() && reply->plain && reply->text == "required";
      const bool literal = std::string_view(kind) == "exchange" && !step.reply_required;
      if (reply != nullptr && !step.reply_required && !literal)
        loading_.notes.error(*reply, "\"reply\" of \"expect\": expected \"required\", found " + describe(*reply));
      check_references_below(loading_, expect, scope);
      step.expect = load_matchers(loading_, *expect, answer_kind(kind),
                                  literal ? std::vector<std::string>{} : std::vector<std::string>{"reply"});
      loading_.expects_something = loading_.expects_something || !step.expect.empty() || step.reply_required;
    }
    if (const auto* save = node.find("save"); save != nullptr && save->is_map())
      for (std::size_t i = 0; i < save->items.size(); ++i) {
        const auto& name = save->keys[i];
        if (loading_.scenario.service(name.text) != nullptr || name.text == "scenario")
          loading_.notes.error(name,
                               "a variable cannot be called \"" + name.text + "\": the name has a meaning already");
        step.save[name.text] = text_of(&save->items[i]);
        scope.variables.insert(name.text);
      }
  }

  void reach(const Node& at, const Target& target) {
    if (target.service.empty()) return;
    const auto& links = loading_.scenario.links;
    const bool linked = std::any_of(links.begin(), links.end(), [&](const Link& link) {
      return link.from == workload_lane && link.to == target.service && link.port == target.port;
    });
    if (!linked)
      loading_.notes.error(at, "the workload has no link to port \"" + target.port + "\" of service \"" +
                                   target.service + "\"; add \"workload -> " + target.service + "\" to \"links\"");
  }

  Loading& loading_;
  std::set<std::string> labels_;
};

}  // namespace

void load_workload(Loading& loading) {
  const auto* node = loading.document.find("workload");
  if (node == nullptr) return;
  Scope scope;
  loading.scenario.workload = WorkloadReader(loading).read_list(*node, scope, 1);
  if (const auto total = WorkloadReader::executed(loading.scenario.workload); total > most_steps)
    loading.notes.error(*node, "one run would take more than " + std::to_string(most_steps) + " steps");
}

}  // namespace leafcutter::scenarios::loading
