// The sandbox around Lua 5.4. Three budgets bound an evaluation: live bytes, bytes ever allocated, and instructions,
// which cost more the more memory is in use, because one instruction may walk all of it inside a library function.
#include <lua.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "scenarios/predicate.hpp"
#include "scenarios/regex.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr std::size_t most_live_bytes = 8u << 20;
constexpr std::size_t most_allocated_bytes = 128u << 20;
constexpr std::uint64_t most_instructions = 1'000'000;
constexpr std::uint64_t most_match_steps = 2'000'000'000;
constexpr int hook_every = 200;
constexpr int deepest = 32;

struct Budget {
  std::size_t live = 0;
  std::size_t allocated = 0;
  std::uint64_t instructions = 0;
  std::uint64_t match_steps = 0;
  bool enforced = false;  ///< off while the state itself is built
  bool memory_refused = false;

  void renew() {
    allocated = 0;
    instructions = 0;
    match_steps = 0;
    memory_refused = false;
  }
};

void* allocate(void* context, void* block, std::size_t old_size, std::size_t new_size) {
  auto& budget = *static_cast<Budget*>(context);
  if (block == nullptr) old_size = 0;  // Lua passes a type tag there
  if (new_size == 0) {
    std::free(block);
    budget.live -= old_size;
    return nullptr;
  }
  if (budget.enforced && new_size > old_size) {
    const auto growth = new_size - old_size;
    if (budget.live + growth > most_live_bytes || budget.allocated + new_size > most_allocated_bytes) {
      budget.memory_refused = true;
      return nullptr;
    }
    budget.allocated += new_size;
  }
  auto* moved = std::realloc(block, new_size);
  if (moved != nullptr) budget.live += new_size - old_size;
  return moved;
}

Budget& budget_of(lua_State* lua) {
  void* context = nullptr;
  lua_getallocf(lua, &context);
  return *static_cast<Budget*>(context);
}

void count_instructions(lua_State* lua, lua_Debug*) {
  auto& budget = budget_of(lua);
  budget.instructions += hook_every * (1 + budget.live / (64u << 10));
  if (budget.instructions > most_instructions)
    luaL_error(lua, "it takes too long: over %d instructions", static_cast<int>(most_instructions));
}

/// matches(text, regex): RE2, linear in the text. Instead of patterns that could take for ever.
int lua_matches(lua_State* lua) {
  std::size_t text_size = 0;
  std::size_t regex_size = 0;
  const char* text = luaL_checklstring(lua, 1, &text_size);
  const char* regex = luaL_checklstring(lua, 2, &regex_size);
  // No C++ object may be alive when Lua unwinds with longjmp; hence the inner scope.
  enum class Outcome { no, yes, bad } outcome = Outcome::no;
  {
    const std::string copy(regex, regex_size);
    if (!check_regex(copy))
      outcome = Outcome::bad;
    else if (regex_search(copy, std::string_view(text, text_size)))
      outcome = Outcome::yes;
  }
  if (outcome == Outcome::bad) return luaL_error(lua, "matches: the regular expression /%s/ does not compile", regex);
  lua_pushboolean(lua, outcome == Outcome::yes);
  return 1;
}

/// How many steps the pattern may take on `size` characters, at worst: every repetition may try each length, at each
/// start.
double worst_steps(const char* pattern, std::size_t pattern_size, double size) {
  double steps = size + 1;
  for (std::size_t i = 0; i < pattern_size; ++i) {
    const char c = pattern[i];
    if (c == '%') {
      if (i + 1 < pattern_size && pattern[i + 1] == 'b') steps *= size + 1;
      ++i;
    } else if (c == '[') {  // a set: what is in it repeats nothing
      i += i + 1 < pattern_size && pattern[i + 1] == '^' ? 2 : 1;
      for (bool first = true; i < pattern_size && (first || pattern[i] != ']'); first = false)
        i += pattern[i] == '%' ? 2 : 1;
    } else if (c == '*' || c == '+' || c == '-') {
      steps *= size + 1;
    } else if (c == '?') {
      steps *= 2;
    }
  }
  return steps;
}

/// Lua's patterns backtrack: k repetitions over n characters may take n^(k+1) steps inside one library call, where no
/// hook fires. Such a call is refused before it starts. Upvalue 1 is the library's own function.
int guarded_pattern(lua_State* lua) {
  std::size_t text_size = 0;
  std::size_t pattern_size = 0;
  luaL_checklstring(lua, 1, &text_size);
  const char* pattern = luaL_checklstring(lua, 2, &pattern_size);
  const bool plain = lua_toboolean(lua, 4) != 0 && lua_toboolean(lua, lua_upvalueindex(2)) != 0;
  const auto size = static_cast<double>(text_size);
  const double steps = plain ? size + 1 : worst_steps(pattern, pattern_size, size);
  auto& budget = budget_of(lua);
  if (steps + static_cast<double>(budget.match_steps) > static_cast<double>(most_match_steps))
    return luaL_error(lua, "this pattern could take too long on %d characters; use matches(text, regex)",
                      static_cast<int>(text_size));
  budget.match_steps += static_cast<std::uint64_t>(steps);
  const int arguments = lua_gettop(lua);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, arguments, LUA_MULTRET);
  return lua_gettop(lua);
}

int refuse_write(lua_State* lua) { return luaL_error(lua, "the library cannot be changed"); }

/// Replaces the table on top by an empty one that reads through to it and refuses writes.
void seal(lua_State* lua) {
  lua_newtable(lua);
  lua_newtable(lua);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

/// table[name] of the library on top of the stack -> the same name in the table below it.
template <std::size_t N>
void copy_fields(lua_State* lua, const std::array<const char*, N>& names) {
  for (const auto* name : names) {
    lua_getfield(lua, -1, name);
    lua_setfield(lua, -3, name);
  }
  lua_pop(lua, 1);
}

void guard_pattern_function(lua_State* lua, const char* name, bool has_plain) {
  lua_getfield(lua, -1, name);
  lua_pushboolean(lua, has_plain);
  lua_pushcclosure(lua, guarded_pattern, 2);
  lua_setfield(lua, -2, name);
}

/// Leaves one table on the stack: the metatable of every evaluation's fresh environment.
int build_environment(lua_State* lua) {
  constexpr std::array base_names = {"assert",   "error",    "ipairs", "next",     "pairs", "select",
                                     "tonumber", "tostring", "type",   "rawequal", "rawlen"};
  constexpr std::array string_names = {"byte",  "char",  "find", "format",  "gmatch", "gsub", "len",
                                       "lower", "match", "rep",  "reverse", "sub",    "upper"};
  constexpr std::array table_names = {"concat", "insert", "pack", "remove", "sort", "unpack"};
  lua_newtable(lua);  // what an expression sees
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 0);
  copy_fields(lua, base_names);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 0);  // as `string`; also as the methods of strings, below
  lua_newtable(lua);
  lua_insert(lua, -2);
  copy_fields(lua, string_names);
  guard_pattern_function(lua, "find", true);
  for (const auto* name : {"match", "gmatch", "gsub"}) guard_pattern_function(lua, name, false);
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 2);
  seal(lua);
  lua_setfield(lua, -2, LUA_STRLIBNAME);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 0);
  lua_newtable(lua);
  lua_insert(lua, -2);
  copy_fields(lua, table_names);
  seal(lua);
  lua_setfield(lua, -2, LUA_TABLIBNAME);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 0);
  for (const auto* name : {"random", "randomseed"}) {  // a predicate is a function of its event
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
  seal(lua);
  lua_setfield(lua, -2, LUA_MATHLIBNAME);
  lua_pushcfunction(lua, lua_matches);
  lua_setfield(lua, -2, "matches");
  seal(lua);
  lua_newtable(lua);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "__index");
  return 1;
}

void push(lua_State* lua, const Value& value, int depth) {
  if (depth > deepest) luaL_error(lua, "a value is nested more than %d deep", deepest);
  luaL_checkstack(lua, 4, "a value is nested too deep");
  switch (value.type()) {
    case Value::value_t::boolean: lua_pushboolean(lua, *value.get_ptr<const bool*>()); return;
    case Value::value_t::number_integer: lua_pushinteger(lua, *value.get_ptr<const std::int64_t*>()); return;
    case Value::value_t::number_unsigned: {
      const auto number = *value.get_ptr<const std::uint64_t*>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<lua_Integer>::max()))
        lua_pushinteger(lua, static_cast<lua_Integer>(number));
      else
        lua_pushnumber(lua, static_cast<lua_Number>(number));
      return;
    }
    case Value::value_t::number_float: lua_pushnumber(lua, *value.get_ptr<const double*>()); return;
    case Value::value_t::string: {
      const auto* text = value.get_ptr<const std::string*>();
      lua_pushlstring(lua, text->data(), text->size());
      return;
    }
    case Value::value_t::array: {
      lua_newtable(lua);
      lua_Integer index = 0;
      for (const auto& element : *value.get_ptr<const Value::array_t*>()) {
        push(lua, element, depth + 1);
        lua_rawseti(lua, -2, ++index);
      }
      return;
    }
    case Value::value_t::object: {
      lua_newtable(lua);
      for (const auto& [name, element] : *value.get_ptr<const Value::object_t*>()) {
        lua_pushlstring(lua, name.data(), name.size());
        push(lua, element, depth + 1);
        lua_rawset(lua, -3);
      }
      return;
    }
    default: lua_pushnil(lua);
  }
}

/// Runs protected: (globals, chunk, metatable of the environment) -> result.
int evaluate_protected(lua_State* lua) {
  const auto* globals = static_cast<const Value*>(lua_touserdata(lua, 1));
  if (globals->is_object())
    push(lua, *globals, 0);
  else
    lua_newtable(lua);
  lua_pushvalue(lua, 3);
  lua_setmetatable(lua, -2);
  lua_setupvalue(lua, 2, 1);  // the chunk's _ENV
  lua_pushvalue(lua, 2);
  lua_call(lua, 0, 1);
  return 1;
}

base::Error bad(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

/// Uses nothing of Lua that can raise an error: it runs unprotected. `left` bounds what one result may hold, since a
/// table that is reached along many ways is copied for each.
base::Expected<Value> to_value(lua_State* lua, int index, int depth, std::size_t& left);

base::Expected<Value> table_to_value(lua_State* lua, int index, int depth, std::size_t& left) {
  const auto length = lua_rawlen(lua, index);
  Value list = Value::array();
  Value object = Value::object();
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    auto element = to_value(lua, lua_gettop(lua), depth + 1, left);
    if (!element) {
      lua_pop(lua, 2);
      return element;
    }
    lua_pop(lua, 1);
    if (lua_type(lua, -1) == LUA_TSTRING) {
      std::size_t size = 0;
      const char* name = lua_tolstring(lua, -1, &size);
      object[std::string(name, size)] = std::move(*element);
    } else if (lua_isinteger(lua, -1) && lua_tointeger(lua, -1) >= 1 &&
               static_cast<std::uint64_t>(lua_tointeger(lua, -1)) <= length) {
      const auto at = static_cast<std::size_t>(lua_tointeger(lua, -1)) - 1;
      while (list.size() <= at) list.push_back(nullptr);
      list[at] = std::move(*element);
    } else {
      lua_pop(lua, 1);
      return bad("the result is a table with keys that are neither names nor 1, 2, 3, ...");
    }
  }
  if (!list.empty() && !object.empty()) return bad("the result is a table with both names and positions");
  if (object.empty()) return list;  // moved: a copy at every level would be quadratic
  return object;
}

base::Expected<Value> to_value(lua_State* lua, int index, int depth, std::size_t& left) {
  if (depth > deepest || lua_checkstack(lua, 4) == 0)
    return bad("the result is nested more than " + std::to_string(deepest) + " deep");
  if (left-- == 0) return bad("the result is too large");
  switch (lua_type(lua, index)) {
    case LUA_TNIL: return Value(nullptr);
    case LUA_TBOOLEAN: return Value(lua_toboolean(lua, index) != 0);
    case LUA_TNUMBER: {
      if (lua_isinteger(lua, index) != 0) return Value(static_cast<std::int64_t>(lua_tointeger(lua, index)));
      const auto number = lua_tonumber(lua, index);
      if (!std::isfinite(number)) return bad("the result is not a finite number");
      return Value(number);
    }
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* text = lua_tolstring(lua, index, &size);
      return Value(std::string(text, size));
    }
    case LUA_TTABLE: return table_to_value(lua, index, depth, left);
    default: return bad(std::string("the result is a ") + lua_typename(lua, lua_type(lua, index)) + ", not a value");
  }
}

/// Lua's message without the name of the chunk, which means nothing to a user.
std::string message_of(lua_State* lua) {
  const char* text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, nullptr) : nullptr;
  std::string message = text != nullptr ? text : "an error that is not text";
  for (const std::string prefix : {"[string \"lua\"]:1: ", "[string \"lua\"]:2: "})
    if (message.starts_with(prefix)) message.erase(0, prefix.size());
  return message;
}

}  // namespace

struct LuaExpression::State {
  std::string text;
  Budget budget;
  lua_State* lua = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (lua != nullptr) lua_close(lua);
  }
};

LuaExpression::LuaExpression(std::unique_ptr<State> state) : state_(std::move(state)) {}
LuaExpression::LuaExpression(LuaExpression&&) noexcept = default;
LuaExpression& LuaExpression::operator=(LuaExpression&&) noexcept = default;
LuaExpression::~LuaExpression() = default;

base::Expected<LuaExpression> LuaExpression::compile(const std::string& expression) {
  auto state = std::make_unique<State>();
  state->text = expression;
  state->lua = lua_newstate(allocate, &state->budget);
  if (state->lua == nullptr) return base::Error{base::ErrorCode::internal, "no memory for Lua", {}};
  auto* lua = state->lua;
  lua_pushcfunction(lua, build_environment);
  if (lua_pcall(lua, 0, 1, 0) != LUA_OK)
    return base::Error{base::ErrorCode::internal, "Lua's sandbox: " + message_of(lua), {}};
  state->budget.enforced = true;
  // The newline ends a comment at the end of the expression. Text only: precompiled Lua is not checked by anybody.
  const auto chunk = "return " + expression + "\n";
  if (luaL_loadbufferx(lua, chunk.data(), chunk.size(), "lua", "t") != LUA_OK)
    return bad("the Lua expression \"" + expression + "\" does not compile: " + message_of(lua));
  lua_sethook(lua, count_instructions, LUA_MASKCOUNT, hook_every);
  return LuaExpression(std::move(state));
}

base::Expected<Value> LuaExpression::evaluate(const Value& globals) {
  auto* lua = state_->lua;  // its stack: the environment's metatable, the chunk
  state_->budget.renew();
  lua_pushcfunction(lua, evaluate_protected);
  lua_pushlightuserdata(lua, const_cast<Value*>(&globals));  // NOLINT: Lua has no const; it is only read
  lua_pushvalue(lua, 2);
  lua_pushvalue(lua, 1);
  const auto status = lua_pcall(lua, 3, 1, 0);
  std::size_t left = 50'000;
  auto result =
      status == LUA_OK
          ? to_value(lua, lua_gettop(lua), 0, left)
          : base::Expected<Value>(bad(state_->budget.memory_refused && status == LUA_ERRMEM ? "it takes too much memory"
                                                                                            : message_of(lua)));
  lua_settop(lua, 2);
  if (!result) {
    result.error().message = "Lua \"" + state_->text + "\": " + result.error().message;
    // What a failed evaluation leaves behind must not narrow the next one.
    lua_gc(lua, LUA_GCCOLLECT);
  }
  return result;
}

}  // namespace leafcutter::scenarios
