// leafcutter keys as a user gives it: made once, joined with a token once, and what it says when it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "support.hpp"

namespace {

using acceptance::content;
using acceptance::Folder;
using acceptance::leafcutter;
using acceptance::leafcutter_command;
using acceptance::Program;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(Keys, AreMadeOnceAndNamesAreChecked) {
  const Folder folder;
  ASSERT_EQ(leafcutter({"keys", "init", "--keys", "fleet"}, folder.path()).exit, 0);
  const auto again = leafcutter({"keys", "init", "--keys", "fleet"}, folder.path());
  EXPECT_EQ(again.exit, 2);
  EXPECT_THAT(again.err, HasSubstr("already"));
  EXPECT_EQ(leafcutter({"keys", "token", "not a name", "--keys", "fleet"}, folder.path()).exit, 2);
  const auto list = leafcutter({"keys", "list", "--keys", "fleet", "--format", "json"}, folder.path());
  EXPECT_EQ(acceptance::Json::parse(list.out).at(0).at("standing"), "good");
  const auto nowhere = leafcutter({"keys", "list", "--keys", "nowhere"}, folder.path());
  EXPECT_EQ(nowhere.exit, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("leafcutter keys init"));
}

TEST(Keys, AHostJoinsOnceAndItsTokenIsNowhere) {
  const Folder folder;
  ASSERT_EQ(leafcutter({"keys", "init", "--keys", "fleet"}, folder.path()).exit, 0);
  const auto token = leafcutter({"keys", "token", "berlin", "--keys", "fleet"}, folder.path());
  ASSERT_EQ(token.exit, 0);
  folder.write("token", token.out);
  const auto secret = token.out.substr(token.out.rfind(':') + 1, 64);
  ASSERT_EQ(secret.size(), 64U);
  Program serve(leafcutter_command({"keys", "serve", "--keys", "fleet", "--listen", "127.0.0.1:0"}), folder.path());
  ASSERT_TRUE(serve.wait_for_error_text("hosts join at 127.0.0.1:", seconds(60)));
  ASSERT_TRUE(serve.wait_for_error_text("\n", seconds(10)));
  const auto& said = serve.error_text();
  const auto port = std::to_string(std::stoi(said.substr(said.find("127.0.0.1:") + 10)));
  const auto join = [&](const std::string& keys) {
    return leafcutter({"keys", "join", "--coordinator", "127.0.0.1:" + port, "--token-file", "token", "--keys", keys},
                      folder.path());
  };
  const auto joined = join("berlin");
  EXPECT_EQ(joined.exit, 0) << joined.err;
  EXPECT_THAT(joined.err, HasSubstr("node berlin"));
  const auto twice = join("again");
  EXPECT_EQ(twice.exit, 2);
  EXPECT_THAT(twice.err, HasSubstr("used up"));
  serve.signal_alone(SIGTERM);
  const auto served = serve.wait(seconds(30));
  EXPECT_EQ(served.exit, 0);
  EXPECT_THAT(served.err, HasSubstr("1 enrolled, 1 refused"));
  for (const auto& text : {token.err, joined.err, twice.err, served.err, content(folder.path() / "fleet/roll.json")})
    EXPECT_THAT(text, Not(HasSubstr(secret)));
}

}  // namespace
