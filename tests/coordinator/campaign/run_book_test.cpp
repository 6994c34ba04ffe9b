#include "coordinator/campaign/run_book.hpp"

#include <gtest/gtest.h>

namespace leafcutter::coordinator {
namespace {

using scenarios::Reason;
using scenarios::Verdict;

TEST(RunName, TellsTheRunFromTheAttempt) {
  for (const auto& [execution, name] :
       std::vector<std::pair<std::string, RunName>>{{"a/1/2#0", {"a/1/2#", 0}},
                                                    {"a/1/2#12", {"a/1/2#", 12}},
                                                    {"a/1/2#c1", {"a/1/2#c1", 0}},
                                                    {"a/1/2#c1.2", {"a/1/2#c1", 2}},
                                                    {"a/1/2#m0f3a-1", {"a/1/2#m0f3a-1", 0}},
                                                    {"a/1/2#k1.1", {"a/1/2#k1", 1}}}) {
    EXPECT_EQ(parse_execution(execution), name) << execution;
    EXPECT_EQ(execution_of(name), execution);
  }
  for (const auto* none : {"", "#", "a/1/2", "a/1/2#", "#0", "a/1/2#c1.", "a/1/2#c1.x", "a/1/2#c1.0", "a/1/2#.1"})
    EXPECT_EQ(parse_execution(none), std::nullopt) << none;
}

TEST(NextAttempt, CountsUp) {
  EXPECT_EQ(next_attempt("a/1/2#0"), "a/1/2#1");
  EXPECT_EQ(next_attempt("a/1/2#c1"), "a/1/2#c1.1");
  EXPECT_EQ(next_attempt("a/1/2#c1.9"), "a/1/2#c1.10");
}

RunBook::Wish wish(const std::string& run) { return {run, {"a", 1, 2}, Purpose::explore, {}, ""}; }

Result result(const std::string& execution, Reason reason = Reason::held) {
  Result r;
  r.execution = execution;
  r.reason = reason;
  r.verdict = scenarios::verdict_of(reason);
  return r;
}

std::vector<std::string> executions(RunBook& book) {
  std::vector<std::string> names;
  for (const auto& order : book.orders()) names.push_back(order.execution);
  return names;
}

TEST(RunBook, OrdersOnce) {
  RunBook book;
  EXPECT_EQ(book.ask(wish("a/1/2#")), nullptr);
  EXPECT_EQ(book.ask(wish("a/1/2#")), nullptr);
  EXPECT_EQ(executions(book), (std::vector<std::string>{"a/1/2#0"}));
  EXPECT_TRUE(book.take(result("a/1/2#0")));
  ASSERT_NE(book.ask(wish("a/1/2#")), nullptr);
  EXPECT_TRUE(executions(book).empty());
}

TEST(RunBook, AnswersFromBeforeWithoutAnOrder) {
  RunBook book;
  book.remember(result("a/1/2#1"));
  book.remember(result("a/1/2#0", Reason::node_lost));
  ASSERT_NE(book.ask(wish("a/1/2#")), nullptr);
  EXPECT_EQ(book.find("a/1/2#")->execution, "a/1/2#1");
  EXPECT_TRUE(executions(book).empty());
}

TEST(RunBook, TriesAgainOnlyWhatTheRunnerLost) {
  for (const auto& [reason, again] : std::vector<std::pair<Reason, bool>>{{Reason::node_lost, true},
                                                                          {Reason::runner_failed, true},
                                                                          {Reason::events_dropped, true},
                                                                          {Reason::not_ready, true},
                                                                          {Reason::unavailable, false},
                                                                          {Reason::timed_out, false},
                                                                          {Reason::not_settled, false},
                                                                          {Reason::vacuous, false},
                                                                          {Reason::property_violated, false}}) {
    RunBook book;
    book.ask(wish("a/1/2#"));
    book.orders();
    book.take(result("a/1/2#0", reason));
    EXPECT_EQ(executions(book).size(), again ? 1u : 0u) << scenarios::name(reason);
    EXPECT_EQ(book.find("a/1/2#") == nullptr, again) << scenarios::name(reason);
  }
}

TEST(RunBook, LetsTheLastOfThreeLossesStand) {
  RunBook book;
  book.ask(wish("a/1/2#c1"));
  for (const auto* execution : {"a/1/2#c1", "a/1/2#c1.1", "a/1/2#c1.2"}) {
    EXPECT_EQ(executions(book), std::vector<std::string>{execution});
    EXPECT_TRUE(book.take(result(execution, Reason::node_lost)));
  }
  EXPECT_TRUE(executions(book).empty());
  EXPECT_EQ(book.find("a/1/2#c1")->execution, "a/1/2#c1.2");
}

TEST(RunBook, WantsEachAttemptOnceAndNoneAfterOneStands) {
  RunBook book;
  EXPECT_FALSE(book.wants("a/1/2#0"));
  book.ask(wish("a/1/2#"));
  EXPECT_TRUE(book.wants("a/1/2#0") && book.wants("a/1/2#1"));
  book.take(result("a/1/2#0", Reason::node_lost));
  EXPECT_FALSE(book.wants("a/1/2#0"));
  EXPECT_TRUE(book.wants("a/1/2#1"));
  book.take(result("a/1/2#1"));
  EXPECT_FALSE(book.wants("a/1/2#2"));
  EXPECT_FALSE(book.take(result("a/1/2#2")));
  EXPECT_EQ(book.taken(), 2u);
}

TEST(RunBook, ForgetsWhatIsDropped) {
  RunBook book;
  book.ask(wish("a/1/2#"));
  auto confirm = wish("a/1/2#c1");
  confirm.purpose = Purpose::confirm;
  book.ask(confirm);
  book.ask(wish("a/1/3#"));
  book.take(result("a/1/3#0"));
  EXPECT_EQ(book.drop(Purpose::explore), (std::vector<std::string>{"a/1/2#0"}));
  EXPECT_FALSE(book.wants("a/1/2#0"));
  EXPECT_TRUE(book.wants("a/1/2#c1"));
  EXPECT_NE(book.find("a/1/3#"), nullptr);
  EXPECT_EQ(executions(book), (std::vector<std::string>{"a/1/2#c1"}));
}

}  // namespace
}  // namespace leafcutter::coordinator
