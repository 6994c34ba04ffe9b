// The sandbox: what expressions can say, what they cannot reach, and that each of them ends.
#include <gtest/gtest.h>

#include <chrono>

#include "scenarios/predicate.hpp"

namespace leafcutter::scenarios {
namespace {

const Value event = {{"status", 201},
                     {"ratio", 0.5},
                     {"json", {{"id", "o-1"}, {"items", {3, 1, 2}}}},
                     {"nothing", nullptr},
                     {"big", 18446744073709551615ull}};

std::string result_of(const std::string& expression, const Value& globals = event) {
  auto lua = LuaExpression::compile(expression);
  if (!lua) return "does not compile: " + lua.error().message;
  const auto first = lua->evaluate(globals);
  const auto second = lua->evaluate(globals);
  const auto text = [](const base::Expected<Value>& result) {
    return result ? result->dump() : "error: " + result.error().message;
  };
  EXPECT_EQ(text(first), text(second)) << expression << " is not the same the second time";
  return text(first);
}

TEST(Lua, SeesTheFieldsAsGlobalsAndAnswersWithValues) {
  EXPECT_EQ(result_of("status == 201"), "true");
  EXPECT_EQ(result_of("json.id .. '!'"), "\"o-1!\"");
  EXPECT_EQ(result_of("#json.items + json.items[1]"), "6");
  EXPECT_EQ(result_of("ratio * 2"), "1.0");
  EXPECT_EQ(result_of("missing"), "null");
  EXPECT_EQ(result_of("nothing == nil"), "true");
  EXPECT_EQ(result_of("json"), R"({"id":"o-1","items":[3,1,2]})");
  EXPECT_EQ(result_of("{1, {a = 2}}"), R"([1,{"a":2}])");
  EXPECT_EQ(result_of("big > 1e19"), "true");
  EXPECT_EQ(result_of("status == 201 -- with a comment"), "true");
  EXPECT_EQ(result_of("string.format('%d-%s', status, json.id):upper()"), "\"201-O-1\"");
  EXPECT_EQ(result_of("math.max(1, 2)"), "2");
  EXPECT_EQ(result_of("(function() local t = {} for k in pairs(json) do t[#t + 1] = k end table.sort(t) return "
                      "table.concat(t, ',') end)()"),
            "\"id,items\"");
  EXPECT_EQ(result_of("matches(json.id, '^o-[0-9]+$')"), "true");
  EXPECT_EQ(result_of("json.id:match('%d+')"), "\"1\"");
  EXPECT_EQ(result_of("('k-1=v-2;'):rep(100):match('([%w-]+)=([^;]+)')"), "\"k-1\"");  // sets and escapes cost nothing
  EXPECT_EQ(result_of("('x'):rep(60000):find('y', 1, true)"), "null");
}

TEST(Lua, SaysWhatIsWrong) {
  EXPECT_EQ(result_of("status = 201"),
            "does not compile: the Lua expression \"status = 201\" does not compile: <eof> expected near '='");
  EXPECT_EQ(result_of("missing.field"),
            "error: Lua \"missing.field\": attempt to index a nil value (global 'missing')");
  EXPECT_EQ(result_of("1/0"), "error: Lua \"1/0\": the result is not a finite number");
  EXPECT_EQ(result_of("print"), "null");
  EXPECT_EQ(result_of("pairs"), "error: Lua \"pairs\": the result is a function, not a value");
  EXPECT_EQ(result_of("matches('a', '(')"),
            "error: Lua \"matches('a', '(')\": matches: the regular expression /(/ does not compile");
  EXPECT_EQ(result_of("{[{}] = 1}"),
            "error: Lua \"{[{}] = 1}\": the result is a table with keys that are neither names nor 1, 2, 3, ...");
}

TEST(Lua, CannotReachOutOfItsSandbox) {
  for (const auto* name :
       {"io",         "os",          "debug",       "package",         "require",      "load",
        "loadstring", "loadfile",    "dofile",      "collectgarbage",  "getmetatable", "setmetatable",
        "rawset",     "pcall",       "xpcall",      "coroutine",       "utf8",         "print",
        "_G",         "string.dump", "math.random", "math.randomseed", "string.pack"})
    EXPECT_EQ(result_of(name), "null") << name;
  // Precompiled Lua is not text.
  EXPECT_NE(result_of("\x1bLua"), "null");
  // The metatable of strings leads to the same functions, not to the library's own table.
  EXPECT_EQ(result_of("('x').dump"), "null");
  EXPECT_NE(result_of("(''):rep(3, ('x').format)").find("error"), std::string::npos);
}

TEST(Lua, CarriesNothingOver) {
  auto lua = LuaExpression::compile("(function() local old = seen; seen = 1; return old end)()");
  ASSERT_TRUE(lua.ok());
  EXPECT_EQ(*lua->evaluate(event), nullptr);
  EXPECT_EQ(*lua->evaluate(event), nullptr);
  for (const auto* attempt :
       {"(function() string.upper = nil return 1 end)()", "(function() table.insert(string, 'x') return 1 end)()",
        "(function() math.pi = 3 return math.pi end)()", "(function() function string.lower() end end)()"})
    EXPECT_NE(result_of(attempt).find("the library cannot be changed"), std::string::npos) << attempt;
  // Globals may hide library names, for this evaluation only.
  EXPECT_EQ(result_of("(function() type = 5 return type end)()"), "5");
  EXPECT_EQ(result_of("type(type)"), "\"function\"");
}

TEST(Lua, EveryRunawayEnds) {
  const std::pair<const char*, const char*> runaways[] = {
      {"(function() while true do end end)()", "takes too long"},
      {"(function() local function f() return f() end return f() end)()", "takes too long"},
      {"(function() local function f() return 1 + f() end return f() end)()", "takes too"},
      {"(function() local t = {} while true do t[#t + 1] = {} end end)()", "t"},
      {"(function() local s = 'x' while true do s = s .. s end end)()", "too much memory"},
      {"(function() local s = 'x' for i = 1, 1e9 do local t = s:rep(1e6) end end)()", "t"},
      {"string.rep('x', 1e9)", "too much memory"},
      {"string.rep('x', 1 << 62)", "too large"},
      {"('a'):rep(2000):find(('a-'):rep(20) .. 'b')", "could take too long"},
      {"('a'):rep(2000):match(('.*'):rep(9) .. 'b')", "could take too long"},
      {"(function() local n = 0 while true do n = n + #('a'):rep(3000):gsub('.-.-b', '') end end)()", "t"},
      {"(function() local t = {} for i = 1, 50000 do t[i] = i end while true do table.remove(t, 1) t[#t + 1] = 1 end "
       "end)()",
       "takes too long"},
      {"(function() local s = ('x'):rep(3000000) local t = s .. 'y' while true do if s == t then return 1 end end "
       "end)()",
       "takes too long"},
      {"(function() local t = {} t.t = t return t end)()", "nested more than"},
      {"(function() local t = {} for i = 1, 30 do t = {t, t} end return t end)()", "too large"},
      {"error()", "an error that is not text"},
  };
  for (const auto& [expression, reason] : runaways) {
    const auto begun = std::chrono::steady_clock::now();
    const auto text = result_of(expression);
    const auto took = std::chrono::steady_clock::now() - begun;
    EXPECT_TRUE(text.starts_with("error: ") && text.find(reason) != std::string::npos) << expression << " => " << text;
    EXPECT_LT(took, std::chrono::seconds(20)) << expression;
  }
}

TEST(Lua, AFailureDoesNotSpoilTheNextEvaluation) {
  auto lua = LuaExpression::compile("n > 1000 and string.rep('x', n) or n");
  ASSERT_TRUE(lua.ok());
  EXPECT_FALSE(lua->evaluate({{"n", 1'000'000'000}}).ok());
  EXPECT_EQ(*lua->evaluate({{"n", 7}}), 7);
  EXPECT_EQ(lua->evaluate({{"n", 2'000'000}})->get<std::string>().size(), 2'000'000u);
  EXPECT_EQ(lua->evaluate({{"n", 2'000'000}})->get<std::string>().size(), 2'000'000u);
}

TEST(Lua, RefusesGlobalsThatAreNestedTooDeep) {
  Value deep = 1;
  for (int i = 0; i < 100; ++i) deep = {{"x", deep}};
  EXPECT_NE(result_of("1", deep).find("nested more than 32 deep"), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::scenarios
