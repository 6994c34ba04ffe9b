// Calls that pass on what a descriptor was found to be: counted as if each had been looked at, and struck when their
// turn comes. Enough of them that all but the first ones are recognized.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "node/observe/site_book.hpp"

namespace leafcutter::node::tests {
namespace {

using scenarios::Aim;
using scenarios::Occurrences;

constexpr auto many = "3000";  ///< beyond the events of a site, and beyond what is believed at a time

std::vector<std::string> through_one_descriptor(const ScratchFolder& folder) {
  return {program("steps"), "through-one-descriptor," + (folder / "a") + "," + (folder / "b") + "," + many};
}

Aim aimed(const std::string& path, Occurrences occurrences, const std::string& object = "") {
  Aim aim;
  aim.path = path;
  aim.object = object;
  aim.occurrences = occurrences;
  return aim;
}

TEST(Passing, ADescriptorThatIsAnotherFileIsCountedAsThat) {
  const ScratchFolder folder;
  const auto outcome = run(through_one_descriptor(folder), {.families = {"write"}, .data_folder = folder.path()});
  ASSERT_TRUE(outcome.exited_well()) << outcome.output;
  EXPECT_EQ(outcome.output, "through-one-descriptor 15000 0 3000\n");
  EXPECT_EQ(outcome.count("write", "data:a"), 6000u);
  EXPECT_EQ(outcome.count("write", "data:b"), 3000u);
  EXPECT_EQ(outcome.count("write", "data:a-renamed"), 3000u) << "open all the time, under another name";
  EXPECT_EQ(outcome.sites(), 3u) << "never the pipe";
}

TEST(Passing, AVisitFarBeyondIsStruckAtItsSiteAndNowhereElse) {
  const ScratchFolder folder;
  const auto outcome =
      run(through_one_descriptor(folder), {.families = {"write"},
                                           .data_folder = folder.path(),
                                           .faults = {fault("errno", "write", "data:b", 2500, {{"error", "ENOSPC"}})}});
  EXPECT_EQ(outcome.output, "through-one-descriptor 14998 0 3000\n") << "one byte less, and a -1";
  EXPECT_EQ(contents(folder / "b").size(), 2999u);
  EXPECT_EQ(outcome.fired()["evidence"]["path"], folder / "b");
}

TEST(Passing, ARuleCountsWhatItSelectsAndNothingElse) {
  const ScratchFolder folder;
  const auto file = aimed("b", {Occurrences::Which::every, 1000});
  const auto pipe = aimed("", {Occurrences::Which::nth, 2999}, "pipe");
  const auto outcome = run(
      through_one_descriptor(folder),
      {.families = {"write"},
       .data_folder = folder.path(),
       .faults = {rule("errno", "write", {{"error", "EIO"}}, file), rule("errno", "write", {{"error", "EIO"}}, pipe)}});
  EXPECT_EQ(contents(folder / "b").size(), 2997u) << "three of three thousand";
  EXPECT_EQ(outcome.output, "through-one-descriptor 14992 0 2999\n") << "four bytes less, and four -1";
  EXPECT_EQ(outcome.of_kind("fault.fired").size(), 2u);
}

TEST(Passing, WhatARuleAsksOfEachCallIsAskedOfEach) {
  const ScratchFolder folder;
  Aim aim = aimed("a", {});
  aim.offset = scenarios::Range{150, 150};
  const auto outcome =
      run({program("steps"), "through-one-descriptor," + (folder / "a") + "," + (folder / "b") + ",200"},
          {.families = {"write"},
           .data_folder = folder.path(),
           .faults = {rule("errno", "write", {{"error", "EIO"}}, aim)}});
  // 150 bytes, then a -1 for each of the other 50 and of the second 200: the file grows no more.
  EXPECT_EQ(outcome.output, "through-one-descriptor 500 0 200\n");
  EXPECT_EQ(contents(folder / "a-renamed").size(), 350u);
}

/// A book, and such a visit as was made once.
class StandingVisits : public testing::Test {
 protected:
  void have(std::vector<scenarios::Fault> faults) {
    book_ = std::make_unique<SiteBook>(scenarios::Plan{std::move(faults), {}, {}}, recorder_);
    book_->visit(site_, facts_, "/data");
    standing_ = book_->standing(site_, &facts_, "/data");
  }
  /// Of the visits that pass, until one does not; at most 100.
  int passed() {
    int count = 0;
    while (count < 100 && book_->pass(standing_, 0)) ++count;
    return count;
  }
  scenarios::Fault waiting(std::uint32_t nth) {
    auto waits = rule("errno", "write", {{"error", "EIO"}}, aimed("a", {Occurrences::Which::nth, nth}));
    waits.aim->after = "ready";
    return waits;
  }

  Recorder recorder_{[] { return std::chrono::nanoseconds(0); }, [](const Event&) {}};
  const Site site_{"shop", "write", "data:a"};
  const scenarios::CallFacts facts_{"write", "file", "/data/a", {}, {}, {}, {}, 0};
  std::unique_ptr<SiteBook> book_;
  SiteBook::Standing standing_;
};

TEST_F(StandingVisits, PassUntilTheFirstThatIsStruck) {
  have({fault("errno", "write", "data:a", 8)});
  EXPECT_EQ(passed(), 6) << "the first was a visit of its own";
  EXPECT_EQ(book_->visit(site_).strikes.size(), 1u) << "what did not pass was not counted";
}

TEST_F(StandingVisits, AreNotCountedByARuleThatWaitsForItsEvent) {
  have({waiting(3)});
  EXPECT_EQ(passed(), 100);
  book_->seen(0);
  EXPECT_EQ(passed(), 2);
}

TEST_F(StandingVisits, CanBeTakenBackAsTheyWereCounted) {
  have({waiting(3), fault("errno", "write", "data:a", 4)});
  ASSERT_TRUE(book_->pass(standing_, 0));
  book_->seen(0);
  book_->take_back(standing_);  // the rule had not counted it
  ASSERT_TRUE(book_->pass(standing_, 0));
  book_->take_back(standing_);  // both had
  EXPECT_EQ(passed(), 2);
}

TEST_F(StandingVisits, OfTheFirstThatAreShownDoNotPass) {
  have({});
  EXPECT_FALSE(book_->pass(standing_, 2)) << "the second is shown, too";
  book_->visit(site_, facts_, "/data");
  EXPECT_TRUE(book_->pass(standing_, 2));
}

}  // namespace
}  // namespace leafcutter::node::tests
