// What accept() called accepted is there after a kill -9 at any instant.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <set>

#include "base/random.hpp"
#include "base/unique_fd.hpp"
#include "tests/coordinator/ledger/ledger_fixture.hpp"

namespace leafcutter::coordinator {
namespace {

using namespace testing;

struct Told {
  std::uint32_t index;
  std::uint32_t opened;  ///< 1: the ledger is open; 0: result `index` was accepted
};

/// In the child: accepts results from `first` on and tells of each, until it is killed.
[[noreturn]] void accept_for_ever(const std::string& folder, std::uint32_t first, int tell) {
  auto opened = Ledger::open(folder);
  if (!opened) ::_exit(3);
  auto& ledger = **opened;
  if (!ledger.save_campaign(campaign_row())) ::_exit(4);
  Told told{0, 1};
  if (::write(tell, &told, sizeof told) != sizeof told) ::_exit(5);
  for (auto index = first;; ++index) {
    auto result = result_at(1, index);
    auto blob = ledger.store_blob("trace " + std::to_string(index));
    if (!blob) ::_exit(6);
    result.trace = *blob;
    auto accepted = ledger.accept("0a1b2c3d", result);
    if (!accepted || !*accepted) ::_exit(7);
    told = {index, 0};
    if (::write(tell, &told, sizeof told) != sizeof told) ::_exit(5);
  }
}

TEST(LedgerKilled, LosesNothingThatWasAccepted) {
  Folder folder;
  base::Stream random(11, "kill", 0);
  std::set<std::uint32_t> accepted;
  std::uint32_t next = 0;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    base::UniqueFd read_end(ends[0]), write_end(ends[1]);
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) accept_for_ever(folder.path(), next, write_end.get());
    write_end.reset();

    // Killed after a few acceptances and then somewhere within the next: at no boundary of ours.
    const auto wanted = random.below(12) + 1;
    Told told{};
    for (std::uint64_t seen = 0; seen < wanted;) {
      ASSERT_EQ(::read(read_end.get(), &told, sizeof told), static_cast<ssize_t>(sizeof told))
          << "the child ended by itself";
      if (told.opened == 0) {
        accepted.insert(told.index);
        ++seen;
      }
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(3000));
    while (std::chrono::steady_clock::now() < until) {
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    while (::read(read_end.get(), &told, sizeof told) == static_cast<ssize_t>(sizeof told))
      if (told.opened == 0) accepted.insert(told.index);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);

    auto ledger = open_ledger(folder.path());
    ASSERT_TRUE(ledger);
    auto results = ledger->results("0a1b2c3d");
    ASSERT_TRUE(results.ok()) << results.error().text();
    std::set<std::string> there;
    for (const auto& result : *results) {
      there.insert(result.execution);
      const auto address = scenarios::parse_address(result.address);
      next = std::max(next, static_cast<std::uint32_t>(address->index) + 1);
      EXPECT_TRUE(ledger->load_blob(result.trace).ok()) << result.execution;
    }
    for (const auto index : accepted) EXPECT_TRUE(there.contains(result_at(1, index).execution)) << index;
    // At most the one that was under way is there without having been told of.
    EXPECT_LE(there.size(), accepted.size() + static_cast<std::size_t>(round) + 1);
  }
  EXPECT_GE(accepted.size(), 12u);
}

}  // namespace
}  // namespace leafcutter::coordinator
