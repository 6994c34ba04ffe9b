// Patterns and Lua expressions, ready to be asked about events. Lua runs in a sandbox: base, string, table and math
// without load, dofile, require or any I/O; a bounded number of instructions and bytes per evaluation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::scenarios {

/// A sandboxed Lua state with one compiled expression.
class LuaExpression {
 public:
  /// Errors: bad_input with Lua's own message.
  static base::Expected<LuaExpression> compile(const std::string& expression);
  LuaExpression(LuaExpression&&) noexcept;
  LuaExpression& operator=(LuaExpression&&) noexcept;
  ~LuaExpression();

  /// Evaluates with the object's fields as globals (nil where absent). Errors: bad_input (run-time error, instruction
  /// or memory limit). The same expression may be evaluated any number of times; nothing is carried over.
  base::Expected<Value> evaluate(const Value& globals);

 private:
  struct State;
  explicit LuaExpression(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Does `attrs` satisfy every matcher? Missing attributes satisfy nothing but `exists: false`.
bool matches(const std::vector<Matcher>& matchers, const Value& attrs);

/// The value at an attribute path ("json", "id"), or nullptr. Array elements are numbers in the path.
const Value* at_path(const Value& attrs, const std::vector<std::string>& path);

/// A Pattern with its expressions compiled. Not thread-safe (Lua); make one per judging thread.
class CompiledPattern {
 public:
  static base::Expected<CompiledPattern> compile(const Pattern& pattern);

  /// Errors: bad_input (the Lua expression failed on this event).
  base::Expected<bool> matches(const protocols::Event& event);

  /// The key of a matching event as text; nullopt when the pattern has a key and the event lacks it; "" without a key.
  std::optional<std::string> key(const protocols::Event& event) const;

 private:
  Pattern pattern_;
  std::optional<LuaExpression> lua_;
};

/// Lua's idea of truth: everything but nil and false.
bool is_true(const Value& result);

/// "${name}" and "${name.field}" replaced; unknown names are errors. "$${" is a literal "${".
base::Expected<std::string> expand(const std::string& text, const Value& variables);

/// The same in JSON text (Step::body with `json_body`): inside a string the value is escaped, elsewhere it goes in as
/// JSON.
base::Expected<std::string> expand_json(const std::string& json, const Value& variables);

/// The same in the values of matchers (a step's `expect`); a name that is unknown stays as it is written. "${name}"
/// alone equals the value itself as well as its text.
std::vector<Matcher> expand(std::vector<Matcher> matchers, const Value& variables);

}  // namespace leafcutter::scenarios
