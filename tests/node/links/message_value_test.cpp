#include "node/links/message_value.hpp"

#include <gtest/gtest.h>

namespace leafcutter::node {
namespace {

using protocols::HttpMessage;
using protocols::Value;

Value attributes(const std::string& body, const std::string& type = "", bool truncated = false) {
  HttpMessage message;
  message.body = body;
  message.body_truncated = truncated;
  if (!type.empty()) message.headers.emplace_back("Content-Type", type);
  auto attrs = Value::object();
  add_body(attrs, message);
  return attrs;
}

TEST(AddBody, ParsesWhatIsJson) {
  EXPECT_EQ(attributes("{\"id\":7}"), (Value{{"json", {{"id", 7}}}}));
  EXPECT_EQ(attributes("17", "application/json")["json"], 17);
  EXPECT_EQ(attributes("17", "text/plain")["body"], "17");
  EXPECT_EQ(attributes("{broken", "application/json")["body"], "{broken");
  EXPECT_EQ(attributes(""), Value::object());
  EXPECT_EQ(attributes("{\"id\":7}", "application/json", true)["body"], "{\"id\":7}");
}

TEST(AddBody, IsBoundedInDepthAndLength) {
  const auto deep = std::string(60000, '[') + std::string(60000, ']');
  EXPECT_FALSE(attributes(deep).contains("json"));
  EXPECT_LE(attributes(deep)["body"].get<std::string>().size(), 4096u);
  EXPECT_TRUE(attributes(std::string(60, '[') + std::string(60, ']')).contains("json"));
}

TEST(Printable, IsAlwaysUtf8) {
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f", 100), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("\xff\xfe", 100), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3", 100), "\\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80", 100), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("ab\xc3\xbc", 3), "ab");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_NO_THROW(Value(printable(all, 10000)).dump());
}

}  // namespace
}  // namespace leafcutter::node
