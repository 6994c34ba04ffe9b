#include "node/host/audit_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/text.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::node::host {
namespace {

using protocols::AuditReport;
using testing::HasSubstr;

struct LogPlace {
  tests::Folder folder;
  std::string path = folder / "audit.log";
  base::SigningKey key = *audit_key(folder.path());

  base::Expected<AuditLog> open() const { return AuditLog::open({path, "n1", {}}, key); }
  std::string bytes() const { return *base::read_file(path); }
  void write(const std::string& text) const { ASSERT_TRUE(base::write_file_atomically(path, text)); }
  AuditReport verify() const { return protocols::verify_audit(bytes(), {key.public_key(), "", {}}); }
};

TEST(AuditLog, RecordsFollowEachOtherOverRestarts) {
  const LogPlace place;
  for (int i = 0; i < 3; ++i) {
    auto log = place.open();
    if (!log) GTEST_FAIL() << log.error().text();
    ASSERT_TRUE(log->append({.id = "a" + std::to_string(i), .stage = "intent"}));
  }
  const auto report = place.verify();
  EXPECT_EQ(report.flaw, AuditReport::Flaw::none) << report.why;
  EXPECT_EQ(report.good, 4U);
  EXPECT_EQ(protocols::read_audit(place.bytes())[3].id, "a2");
  EXPECT_EQ(audit_key(place.folder.path())->public_key(), place.key.public_key()) << "the key is made once";
}

TEST(AuditLog, TwoWritersShareOneChain) {
  const LogPlace place;
  auto one = *place.open(), two = *place.open();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(one.append({.owner = "one"}));
    ASSERT_TRUE(two.append({.owner = "two"}));
  }
  const auto report = place.verify();
  EXPECT_EQ(report.flaw, AuditReport::Flaw::none) << report.why;
  EXPECT_EQ(report.good, 11U);
  EXPECT_EQ(one.head()->head, report.head);
  EXPECT_EQ(one.head()->log, report.first);
}

/// Every place at which a crash can end the last write.
TEST(AuditLog, ATornTailIsSetAsideAndNoted) {
  const LogPlace place;
  {
    auto log = *place.open();
    ASSERT_TRUE(log.append({.id = "kept"}));
  }
  const auto before = place.bytes();
  {
    auto log = *place.open();
    ASSERT_TRUE(log.append({.id = "torn"}));
  }
  const auto whole = place.bytes();
  for (std::size_t size = before.size() + 1; size < whole.size(); size += 7) {
    place.write(whole.substr(0, size));
    {
      auto log = place.open();
      if (!log) GTEST_FAIL() << size << ": " << log.error().text();
      ASSERT_TRUE(log->append({.id = "after"}));
    }
    EXPECT_EQ(place.verify().flaw, AuditReport::Flaw::none) << size;
    const auto records = protocols::read_audit(place.bytes());
    ASSERT_EQ(records.size(), 4U);
    EXPECT_EQ(records[1].id, "kept");
    EXPECT_EQ(records[2].stage, "torn");
    EXPECT_EQ(records[3].id, "after");
    EXPECT_EQ(*base::read_file(place.path + ".torn-2"), whole.substr(before.size(), size - before.size()));
  }
}

TEST(AuditLog, NothingIsAppendedToATamperedLog) {
  const LogPlace place;
  {
    auto log = *place.open();
    ASSERT_TRUE(log.append({.id = "a"}));
    ASSERT_TRUE(log.append({.id = "b"}));
  }
  auto bytes = place.bytes();
  bytes[bytes.size() - 80] = static_cast<char>(bytes[bytes.size() - 80] ^ 1);
  place.write(bytes);
  const auto refused = place.open();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("does not verify at record 2"));
  EXPECT_EQ(place.bytes(), bytes) << "it is evidence";
  const auto other = *base::SigningKey::generate();
  EXPECT_FALSE(AuditLog::open({place.path, "n1", {}}, other).ok()) << "somebody else's log";
}

TEST(AuditLog, WhatIsCutOffWhileItIsOpenIsNoticed) {
  const LogPlace place;
  auto log = *place.open();
  ASSERT_TRUE(log.append({.id = "a"}));
  ASSERT_EQ(::truncate(place.path.c_str(), 10), 0);
  EXPECT_THAT(log.append({.id = "b"}).error().message, HasSubstr("has become shorter"));
}

/// A full disk: the record is not there at all, and there is room again later.
TEST(AuditLog, AWriteThatFailsLeavesNoPart) {
  const LogPlace place;
  auto log = *place.open();
  const auto before = place.bytes();
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = old;
  tight.rlim_cur = before.size() + 50;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto failed = log.append({.id = "a"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(place.bytes(), before);
  EXPECT_TRUE(log.append({.id = "b"}));
  EXPECT_EQ(place.verify().good, 2U);
}

}  // namespace
}  // namespace leafcutter::node::host
