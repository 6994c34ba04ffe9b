#include "commands/exec_rules.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/text.hpp"
#include "node/exec/session.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::commands {
namespace {

class RulesReader {
 public:
  explicit RulesReader(const RuleSources& sources) : seed_(sources.seed) {
    scope_.lane = node::program_lane;
    scope_.events.events = node::session_events();
    scope_.kernel = scenarios::Scope::program;
    if (!sources.with_image)
      scope_.without_image = "needs to know what was synced: name the program's data folder with --data DIR";
  }

  void read(const std::string& rule, const std::string& file, int line) {
    scenarios::Mistake mistake;
    auto fault = scenarios::read_rule(rule, scope_, mistake);
    if (!fault) {
      const int column = line > 0 ? static_cast<int>(mistake.at) + 1 : 0;
      out_.errors.push_back({base::ErrorCode::bad_input,
                             mistake.message + "\n" + scenarios::marked(rule, mistake),
                             {file, line, column}});
      return;
    }
    // One stream a rule: another rule changes none of its draws.
    if (fault->aim->per_million < 1'000'000)
      fault->aim->seed = base::Stream(seed_, "rule", out_.plan.faults.size()).next();
    out_.plan.faults.push_back(std::move(*fault));
  }

  void read_file(const std::string& path) {
    const auto text = base::read_file(path);
    if (!text) {
      out_.errors.push_back({base::ErrorCode::bad_input, text.error().message, {"--rules", 0, 0}});
      return;
    }
    int number = 0;
    for (std::size_t from = 0; from < text->size();) {
      const auto to = std::min(text->find('\n', from), text->size());
      auto line = text->substr(from, to - from);
      if (line.ends_with('\r')) line.pop_back();
      from = to + 1;
      ++number;
      const auto first = line.find_first_not_of(" \t");
      if (first != std::string::npos && line[first] != '#') read(line, path, number);
    }
  }

  ReadRules take() { return std::move(out_); }

 private:
  scenarios::RuleScope scope_;
  std::uint64_t seed_;
  ReadRules out_;
};

}  // namespace

ReadRules read_rules(const RuleSources& sources) {
  RulesReader reader(sources);
  for (const auto& rule : sources.rules) reader.read(rule, "--fault", 0);
  for (const auto& file : sources.files) reader.read_file(file);
  return reader.take();
}

base::Expected<std::vector<std::string>> read_families(const std::vector<std::string>& given) {
  std::vector<std::string> known, families;
  for (const auto& family : scenarios::syscall_families()) known.push_back(family.name);
  for (const auto& text : given)
    for (std::size_t from = 0; from <= text.size();) {
      const auto to = std::min(text.find_first_of(", ", from), text.size());
      const auto name = text.substr(from, to - from);
      from = to + 1;
      if (name.empty()) continue;
      if (name == "all") {
        families = known;
        continue;
      }
      if (scenarios::syscall_family(name) == nullptr) {
        const auto near = name.size() <= 100 ? base::nearest(name, known) : std::nullopt;
        return base::Error{
            base::ErrorCode::bad_input,
            "unknown system call family \"" + name + "\"" +
                (near ? "; did you mean \"" + *near + "\"?" : "; known: all, " + base::join_names(known)),
            {"--observe", 0, 0}};
      }
      families.push_back(name);
    }
  return families;
}

}  // namespace leafcutter::commands
