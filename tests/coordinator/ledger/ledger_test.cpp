#include "coordinator/ledger/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "coordinator/ledger/result_codec.hpp"
#include "coordinator/ledger/sqlite.hpp"
#include "tests/coordinator/ledger/ledger_fixture.hpp"

namespace leafcutter::coordinator {
namespace {

using namespace testing;
using scenarios::Reason;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

template <class T>
T must(base::Expected<T> value) {
  if (!value) throw std::runtime_error(value.error().text());
  return std::move(*value);
}

/// Until the process sleeps in some system call; gives up after 5 s.
void wait_until_asleep(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    const auto name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.compare(name_end, 3, ") S") == 0) return;
  }
}

TEST(Ledger, KeepsCampaignsOverReopening) {
  Folder folder;
  auto row = campaign_row();
  ASSERT_TRUE(open_ledger(folder.path())->save_campaign(row));
  row.state = "complete";
  ASSERT_TRUE(open_ledger(folder.path())->save_campaign(row));
  const auto read = must(open_ledger(folder.path())->campaign(row.name));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_value(*read), to_value(row));
  EXPECT_EQ(read->state, "complete");
  EXPECT_EQ(read->started_unix, row.started_unix);
  EXPECT_EQ(read->elapsed_ms, row.elapsed_ms);
  EXPECT_EQ(read->seed, row.seed);
  EXPECT_FALSE(must(open_ledger(folder.path())->campaign("ffffffff")));
  EXPECT_THAT(must(open_ledger(folder.path())->campaigns()), SizeIs(1));
}

TEST(Ledger, ReturnsResultsAsTheyWere) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  ASSERT_TRUE(ledger->save_campaign(campaign_row()));
  const auto result = result_at(1, 7, Reason::property_violated, 2, Purpose::confirm);
  EXPECT_TRUE(must(ledger->accept("0a1b2c3d", result)));
  const auto all = must(ledger->results("0a1b2c3d"));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].execution, result.execution);
  EXPECT_EQ(to_value(all[0]), to_value(result));
  EXPECT_EQ(all[0].plan, result.plan);
  EXPECT_EQ(all[0].violations[0].events, result.violations[0].events);
  const auto one = must(ledger->result(result.execution));
  ASSERT_TRUE(one);
  EXPECT_EQ(to_value(*one), to_value(result));
  EXPECT_FALSE(must(ledger->result("0a1b2c3d/1/8#1")));
}

TEST(Ledger, AcceptsAnExecutionOnce) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  ASSERT_TRUE(ledger->save_campaign(campaign_row()));
  EXPECT_TRUE(must(ledger->accept("0a1b2c3d", result_at(1, 7))));
  EXPECT_FALSE(must(ledger->accept("0a1b2c3d", result_at(1, 7, Reason::property_violated))));
  EXPECT_TRUE(must(ledger->accept("0a1b2c3d", result_at(1, 7, Reason::property_violated, 2))));
  const auto all = must(ledger->results("0a1b2c3d"));
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].reason, Reason::held);
}

TEST(Ledger, NothingIsKeptOfAnUnknownCampaign) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  const auto accepted = ledger->accept("0a1b2c3d", result_at(1, 7));
  ASSERT_FALSE(accepted.ok());
  EXPECT_EQ(accepted.error().code, base::ErrorCode::bad_input);
  EXPECT_FALSE(ledger->save_finding("0a1b2c3d", outbox_finding()).ok());
  auto row = campaign_row("../evil");
  EXPECT_FALSE(ledger->save_campaign(row).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/evil"));
}

TEST(Ledger, ASecondProcessIsToldWhoHoldsIt) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  const auto second = Ledger::open(folder.path());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, base::ErrorCode::conflict);
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
  ledger.reset();
  EXPECT_TRUE(Ledger::open(folder.path()).ok());
}

TEST(Ledger, WaitsForTheChildrenOfAKilledOwner) {
  Folder folder;
  // The owner leaves a child that shares its lock until the test lets it go: the pipe's end is what it waits for.
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const auto owner = ::fork();
  if (owner == 0) {
    auto ledger = Ledger::open(folder.path());
    if (::fork() == 0) {
      ::close(go[1]);
      char byte;
      static_cast<void>(!::read(go[0], &byte, 1));
      ::_exit(0);
    }
    ::_exit(ledger.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  ASSERT_EQ(status, 0);
  ::close(go[0]);
  const auto releaser = ::fork();
  if (releaser == 0) {
    wait_until_asleep(::getppid());  // in Ledger::open, waiting
    ::_exit(0);                      // and with it goes the pipe's last writing end
  }
  ::close(go[1]);
  EXPECT_TRUE(Ledger::open(folder.path()).ok());
  ::waitpid(releaser, &status, 0);
}

TEST(Ledger, RefusesWhatANewerVersionMade) {
  Folder folder;
  open_ledger(folder.path()).reset();
  {
    auto database = must(Database::open(folder.path() + "/ledger.db"));
    ASSERT_TRUE(database.execute("PRAGMA user_version=99"));
  }
  const auto opened = Ledger::open(folder.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, base::ErrorCode::bad_input);
  EXPECT_THAT(opened.error().message, HasSubstr("schema 99"));
}

TEST(Ledger, RunsInWalWithFullSync) {
  Folder folder;
  auto database = must(Database::open(folder.path() + "/x.db"));
  for (const auto& [pragma, wanted] : std::vector<std::pair<const char*, std::string>>{
           {"PRAGMA journal_mode", "wal"}, {"PRAGMA synchronous", "2"}, {"PRAGMA foreign_keys", "1"}}) {
    auto statement = must(database.prepare(pragma));
    ASSERT_TRUE(must(statement.step()));
    EXPECT_EQ(statement.text(0), wanted) << pragma;
  }
}

TEST(Ledger, WritesEpochHeadersBesideTheDatabase) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  EpochHeader header;
  header.campaign = "0a1b2c3d";
  header.number = 1;
  header.kind = EpochKind::singles;
  header.seed = campaign_row().seed;
  header.candidates = {crash_fault()};
  header.leaves = 1;
  EXPECT_FALSE(ledger->save_epoch(header).ok());  // its campaign is not there yet
  ASSERT_TRUE(ledger->save_campaign(campaign_row()));
  ASSERT_TRUE(ledger->save_epoch(header));
  const auto headers = must(ledger->epochs("0a1b2c3d"));
  ASSERT_THAT(headers, SizeIs(1));
  EXPECT_EQ(headers[0].digest(), header.digest());

  const auto file = must(base::read_file(folder.path() + "/campaigns/0a1b2c3d/epoch-1.json"));
  const auto from_file = epoch_header_from(Value::parse(file));
  ASSERT_TRUE(from_file.ok()) << from_file.error().text();
  EXPECT_EQ(from_file->digest(), header.digest());
  const auto row =
      campaign_row_from(Value::parse(must(base::read_file(folder.path() + "/campaigns/0a1b2c3d/campaign.json"))));
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->scenario_text, campaign_row().scenario_text);
  EXPECT_EQ(row->seed, campaign_row().seed);
}

TEST(Ledger, FindingsAreReplacedBySignature) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  ASSERT_TRUE(ledger->save_campaign(campaign_row()));
  auto finding = outbox_finding();
  ASSERT_TRUE(ledger->save_finding("0a1b2c3d", finding));
  finding.seen = 9;
  ASSERT_TRUE(ledger->save_finding("0a1b2c3d", finding));
  auto earlier = finding;
  earlier.signature = "ffffffffffff";
  earlier.leaf.index = 2;
  ASSERT_TRUE(ledger->save_finding("0a1b2c3d", earlier));
  const auto findings = must(ledger->findings("0a1b2c3d"));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].leaf.index, 2u);
  EXPECT_EQ(to_value(findings[1]), to_value(finding));
}

TEST(Ledger, EraseForgetsOneCampaignOnly) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  for (const auto* name : {"0a1b2c3d", "ffff0000"}) {
    ASSERT_TRUE(ledger->save_campaign(campaign_row(name)));
    EpochHeader header;
    header.campaign = name;
    ASSERT_TRUE(ledger->save_epoch(header));
    auto result = result_at(0, 0);
    result.execution = std::string(name) + "/0/0#1";
    ASSERT_TRUE(must(ledger->accept(name, result)));
    ASSERT_TRUE(ledger->save_finding(name, outbox_finding()));
  }
  ASSERT_TRUE(ledger->erase("0a1b2c3d"));
  EXPECT_THAT(must(ledger->results("0a1b2c3d")), IsEmpty());
  EXPECT_THAT(must(ledger->epochs("0a1b2c3d")), IsEmpty());
  EXPECT_THAT(must(ledger->findings("0a1b2c3d")), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/campaigns/0a1b2c3d/epoch-0.json"));
  EXPECT_THAT(must(ledger->results("ffff0000")), SizeIs(1));
  EXPECT_THAT(must(ledger->findings("ffff0000")), SizeIs(1));
}

TEST(Ledger, TextThatIsNotUtf8IsKeptReadable) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  ASSERT_TRUE(ledger->save_campaign(campaign_row()));
  auto result = result_at(0, 1);
  result.detail = "bad \xff byte";
  ASSERT_TRUE(must(ledger->accept("0a1b2c3d", result)));
  EXPECT_EQ(must(ledger->results("0a1b2c3d")).at(0).detail, "bad \xef\xbf\xbd byte");
}

TEST(Ledger, ADamagedRecordIsAnErrorNotACrash) {
  Folder folder;
  {
    auto ledger = open_ledger(folder.path());
    ASSERT_TRUE(ledger->save_campaign(campaign_row()));
    ASSERT_TRUE(must(ledger->accept("0a1b2c3d", result_at(0, 1))));
  }
  for (const auto* document : {"{", "{}", R"({"verdict":3})"}) {
    {
      auto database = must(Database::open(folder.path() + "/ledger.db"));
      auto statement = must(database.prepare("UPDATE results SET document=?"));
      ASSERT_TRUE(statement.bind(document).run());
    }
    const auto read = open_ledger(folder.path())->results("0a1b2c3d");
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr("damaged"));
  }
}

TEST(Blobs, AreNamedByDigestAndVerified) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  const std::string bytes("trace\0bytes", 11);
  const auto digest = must(ledger->store_blob(bytes));
  EXPECT_EQ(digest, base::sha256(bytes));
  EXPECT_EQ(must(ledger->store_blob(bytes)), digest);
  EXPECT_EQ(must(ledger->load_blob(digest)), bytes);
  const auto file = folder.path() + "/blobs/" + digest.substr(0, 2) + "/" + digest.substr(2);
  ASSERT_TRUE(std::filesystem::exists(file));

  std::ofstream(file, std::ios::binary) << "trace bytes";
  const auto damaged = ledger->load_blob(digest);
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(damaged.error().message, HasSubstr("damaged"));
  EXPECT_FALSE(ledger->load_blob(std::string(64, '0')).ok());
  EXPECT_EQ(ledger->load_blob("../../etc/passwd").error().code, base::ErrorCode::bad_input);

  std::ofstream(file, std::ios::binary | std::ios::trunc) << "torn";
  EXPECT_EQ(must(ledger->store_blob(bytes)), digest);  // written anew
  EXPECT_EQ(must(ledger->load_blob(digest)), bytes);
}

TEST(ResultDigest, IsOverExploredLeavesInAddressOrder) {
  const std::vector<Result> results = {result_at(1, 10, Reason::property_violated), result_at(1, 2), result_at(0, 3),
                                       result_at(1, 2, Reason::property_violated, 5, Purpose::confirm)};
  EXPECT_EQ(result_digest(results),
            base::sha256("0a1b2c3d/0/3 PASS held\n0a1b2c3d/1/2 PASS held\n0a1b2c3d/1/10 FAIL property-violated\n"));
  auto shuffled = results;
  std::reverse(shuffled.begin(), shuffled.end());
  EXPECT_EQ(result_digest(shuffled), result_digest(results));
  shuffled[1].reason = Reason::vacuous;
  EXPECT_NE(result_digest(shuffled), result_digest(results));
}

TEST(ResultDigest, ALeafThatWasRunAgainCountsOnce) {
  const std::vector<Result> once = {result_at(0, 1), result_at(0, 2, Reason::property_violated)};
  auto again = once;
  again.insert(again.begin(), result_at(0, 1, Reason::node_lost, 0));  // an earlier attempt, lost with its node
  again.push_back(result_at(0, 2, Reason::node_lost, 2));              // and a late one
  again.push_back(result_at(0, 2, Reason::held, 3));                   // nor does a decision that came later overrule
  EXPECT_EQ(result_digest(again), result_digest(once));
  // Of troubles the last one counts.
  EXPECT_EQ(result_digest({result_at(0, 1, Reason::runner_failed, 2), result_at(0, 1, Reason::node_lost, 1)}),
            result_digest({result_at(0, 1, Reason::runner_failed, 2)}));
  EXPECT_THAT(explored_leaves(again), SizeIs(2));
}

}  // namespace
}  // namespace leafcutter::coordinator
