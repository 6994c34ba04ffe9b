// A real database over a power loss at each of its syncs. This program's own fsync and fdatasync stand before the C
// library's, so that every sync which SQLite performs, of files and of folders, is reported to the image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <vector>

#include "durable_fixture.hpp"

namespace leafcutter::node::tests {
namespace {

/// Told of each sync before it is carried out (`done` false) and after it succeeded.
using SyncObserver = std::function<void(int fd, bool data_only, bool done)>;
SyncObserver& sync_observer() {
  static SyncObserver observer;
  return observer;
}

int observed_sync(long call, int fd, bool data_only) {
  const auto observer = sync_observer();
  if (observer) observer(fd, data_only, false);
  const auto result = static_cast<int>(::syscall(call, fd));
  if (observer && result == 0) observer(fd, data_only, true);
  return result;
}

}  // namespace
}  // namespace leafcutter::node::tests

extern "C" int fsync(int fd) { return leafcutter::node::tests::observed_sync(SYS_fsync, fd, false); }
extern "C" int fdatasync(int fd) { return leafcutter::node::tests::observed_sync(SYS_fdatasync, fd, true); }

namespace leafcutter::node::tests {
namespace {

constexpr int transactions = 8;
constexpr int rows_each = 3;

struct Database {
  const char* journal;
  const char* synchronous;
  int may_lose;  ///< acknowledged transactions
};

enum class Syncs { hold, lie };
enum class Moment { before, after };  ///< the power fails as the sync is asked for, or once it took effect

/// What the process that uses the database says to the one that judges.
struct Said {
  int acknowledged;
  int syncs;
  bool lost_power;
  char failure[200];
};

void fail_saying(Said& said, const std::string& what) {
  std::snprintf(said.failure, sizeof said.failure, "%s", what.c_str());
  ::_exit(1);
}

class Connection {
 public:
  explicit Connection(const std::string& path) { ok_ = ::sqlite3_open(path.c_str(), &db_) == SQLITE_OK; }
  ~Connection() { ::sqlite3_close(db_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Values of the first column, or the error.
  base::Expected<std::vector<std::string>> ask(const std::string& sql) {
    std::vector<std::string> out;
    char* message = nullptr;
    const auto add = [](void* into, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(into)->emplace_back(values[0] == nullptr ? "" : values[0]);
      return 0;
    };
    if (!ok_ || ::sqlite3_exec(db_, sql.c_str(), add, &out, &message) != SQLITE_OK) {
      base::Error error{base::ErrorCode::io, sql + ": " + (message == nullptr ? "not open" : message), {}};
      ::sqlite3_free(message);
      return error;
    }
    return out;
  }

 private:
  sqlite3* db_ = nullptr;
  bool ok_ = false;
};

/// The service: it ends at the `fatal` sync, in the middle of the call.
[[noreturn]] void use_database(const DurableScratch& scratch, const Database& database, Syncs syncs, int fatal,
                               Moment moment, Said& said) {
  auto image = DurableImage::create(scratch.data(), scratch.image());
  if (!image) fail_saying(said, image.error().text());
  const auto lose_power = [&] {
    const auto lost = image->power_loss();
    if (!lost) fail_saying(said, lost.error().text());
    said.lost_power = true;
    ::_exit(0);
  };
  sync_observer() = [&](int fd, bool data_only, bool done) {
    if (!done) {
      if (++said.syncs == fatal && moment == Moment::before) lose_power();
      return;
    }
    if (syncs == Syncs::lie) {
      image->lied(fd);
    } else if (const auto synced = image->synced(fd, data_only); !synced) {
      fail_saying(said, synced.error().text());
    }
    if (said.syncs == fatal && moment == Moment::after) lose_power();
  };
  Connection connection(scratch / "orders.db");
  const auto ask = [&](const std::string& sql) {
    if (const auto answer = connection.ask(sql); !answer) fail_saying(said, answer.error().text());
  };
  ask(std::string("PRAGMA journal_mode=") + database.journal);
  ask(std::string("PRAGMA synchronous=") + database.synchronous);
  ask("PRAGMA wal_autocheckpoint=6");
  ask("CREATE TABLE orders (number INTEGER, part INTEGER, filler BLOB)");
  for (int number = 1; number <= transactions; ++number) {
    ask("BEGIN");
    for (int part = 0; part < rows_each; ++part)
      ask("INSERT INTO orders VALUES (" + std::to_string(number) + "," + std::to_string(part) + ", randomblob(3000))");
    ask("COMMIT");
    said.acknowledged = number;
  }
  lose_power();
  ::_exit(1);
}

struct Survived {
  Said said{};
  std::string damage;  ///< empty: the database is whole, and has the first `found` transactions completely
  int found = 0;
};

/// What a restarted service finds.
void look_at_database(const std::string& path, Survived& out) {
  Connection connection(path);
  const auto check = connection.ask("PRAGMA integrity_check");
  if (!check || check->at(0) != "ok") {
    out.damage = check ? check->at(0) : check.error().text();
    return;
  }
  const auto table = connection.ask("SELECT count(*) FROM sqlite_master WHERE name = 'orders'");
  if (!table || table->at(0) == "0") return;
  const auto counts = connection.ask("SELECT number || ':' || count(*) FROM orders GROUP BY number ORDER BY number");
  if (!counts) {
    out.damage = counts.error().text();
    return;
  }
  for (const auto& count : *counts)
    if (count != std::to_string(++out.found) + ":" + std::to_string(rows_each)) out.damage = "transaction " + count;
}

Survived survive(const Database& database, Syncs syncs, int fatal, Moment moment) {
  Survived out;
  auto* const said =
      static_cast<Said*>(::mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (said == MAP_FAILED) {
    out.damage = "no shared memory";
    return out;
  }
  const DurableScratch scratch;
  const auto child = ::fork();
  if (child == 0) use_database(scratch, database, syncs, fatal, moment, *said);
  ::waitpid(child, nullptr, 0);
  out.said = *said;
  ::munmap(said, sizeof(Said));
  if (!out.said.lost_power) out.damage = std::string("the power did not fail: ") + out.said.failure;
  if (out.damage.empty()) look_at_database(scratch / "orders.db", out);
  return out;
}

class DurableSqlite : public testing::TestWithParam<Database> {};

TEST_P(DurableSqlite, SurvivesAPowerLossAtEverySync) {
  const auto whole = survive(GetParam(), Syncs::hold, -1, Moment::after);
  ASSERT_EQ(whole.damage, "");
  ASSERT_EQ(whole.said.acknowledged, transactions);
  ASSERT_GE(whole.said.syncs, transactions) << "the syncs are not seen";
  for (int fatal = 1; fatal <= whole.said.syncs; ++fatal)
    for (const auto moment : {Moment::before, Moment::after}) {
      const auto after = survive(GetParam(), Syncs::hold, fatal, moment);
      const auto where = std::string(moment == Moment::before ? "before" : "after") + " sync " + std::to_string(fatal) +
                         " of " + std::to_string(whole.said.syncs);
      ASSERT_EQ(after.damage, "") << where;
      ASSERT_GE(after.found, after.said.acknowledged - GetParam().may_lose) << where;
      ASSERT_LE(after.found, after.said.acknowledged + 1) << where;
    }
}

TEST_P(DurableSqlite, LosesWhatItAcknowledgedWhenSyncsLie) {
  const auto after = survive(GetParam(), Syncs::lie, -1, Moment::after);
  EXPECT_EQ(after.said.acknowledged, transactions);
  EXPECT_EQ(after.damage, "");
  EXPECT_EQ(after.found, 0);
}

// With a rollback journal a transaction is committed when the journal is removed, and only synchronous=EXTRA syncs the
// folder after that (https://www.sqlite.org/pragma.html#pragma_synchronous): the last one may be rolled back.
INSTANTIATE_TEST_SUITE_P(Journals, DurableSqlite,
                         testing::Values(Database{"WAL", "FULL", 0}, Database{"DELETE", "EXTRA", 0},
                                         Database{"DELETE", "FULL", 1}, Database{"TRUNCATE", "FULL", 0},
                                         Database{"PERSIST", "FULL", 0}),
                         [](const auto& which) {
                           return std::string(which.param.journal) + "_" + which.param.synchronous;
                         });

TEST(DurableSqliteDelete, TheLastTransactionIsReallyLostWithoutTheFolderSync) {
  bool lost = false;
  const auto whole = survive({"DELETE", "FULL", 1}, Syncs::hold, -1, Moment::after);
  for (int fatal = 1; fatal <= whole.said.syncs && !lost; ++fatal) {
    const auto after = survive({"DELETE", "FULL", 1}, Syncs::hold, fatal, Moment::before);
    lost = after.found < after.said.acknowledged;
  }
  EXPECT_TRUE(lost);
}

}  // namespace
}  // namespace leafcutter::node::tests
