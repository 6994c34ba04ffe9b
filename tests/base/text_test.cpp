#include "base/text.hpp"

#include <gtest/gtest.h>

#include "base/digest.hpp"

namespace leafcutter::base {
namespace {

using namespace std::chrono_literals;

TEST(Nearest, FindsTheMisspeltName) {
  const std::vector<std::string> names = {"services", "workload", "properties"};
  EXPECT_EQ(nearest("servcies", names), "services");
  EXPECT_EQ(nearest("propertys", names), "properties");
  EXPECT_EQ(nearest("colour", names), std::nullopt);
}

TEST(Duration, ReadsWhatItWrites) {
  for (const auto d : std::vector<std::chrono::nanoseconds>{0s, 1ns, 250us, 300ms, 5s, 90s, 2min, 3h})
    EXPECT_EQ(*parse_duration(format_duration(d)), d) << format_duration(d);
}

TEST(Duration, RefusesWhatIsNone) {
  for (const auto* text : {"", "5", "s", "-1s", "1.5s", "5 s", "5sec", "99999999999999999999s", "9999999999999h"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  EXPECT_EQ(parse_duration("5").error().message,
            "\"5\" is not a duration: the unit is missing (ns, us, ms, s, m or h)");
}

TEST(ErrorText, NamesThePlace) {
  EXPECT_EQ((Error{ErrorCode::bad_input, "no", {"a.yaml", 3, 7}}.text()), "a.yaml:3:7: no");
  EXPECT_EQ((Error{ErrorCode::bad_input, "no", {}}.text()), "no");
}

TEST(Sha256, AnswersAsPublished) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace leafcutter::base
