#include "scenarios/regex.hpp"

#include <memory>
#include <unordered_map>

namespace leafcutter::scenarios {
namespace {

RE2::Options options() {
  RE2::Options chosen;
  chosen.set_log_errors(false);
  chosen.set_max_mem(1 << 20);
  return chosen;
}

}  // namespace

base::Status check_regex(const std::string& regex) {
  const RE2 compiled(regex, options());
  if (compiled.ok()) return base::ok();
  return base::Error{
      base::ErrorCode::bad_input, "the regular expression /" + regex + "/ does not compile: " + compiled.error(), {}};
}

bool regex_search(const std::string& regex, std::string_view text) {
  // A scenario has a handful of regexes and a judge asks them about many thousand events: compiling costs a hundred
  // times what matching does. The bound is for long-lived threads that see many scenarios.
  constexpr std::size_t most = 64;
  thread_local std::unordered_map<std::string, std::unique_ptr<RE2>> compiled;
  auto found = compiled.find(regex);
  if (found == compiled.end()) {
    if (compiled.size() >= most) compiled.clear();
    found = compiled.emplace(regex, std::make_unique<RE2>(regex, options())).first;
  }
  return found->second->ok() && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *found->second);
}

}  // namespace leafcutter::scenarios
