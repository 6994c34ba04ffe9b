#include "node/links/path_class.hpp"

#include <gtest/gtest.h>

namespace leafcutter::node {
namespace {

TEST(PathClass, MakesRequestsForDifferentThingsTheSamePlace) {
  EXPECT_EQ(path_class("/orders/order-17"), "/orders/order-#");
  EXPECT_EQ(path_class("/orders/order-1"), path_class("/orders/order-230"));
  EXPECT_EQ(path_class("/v2/a1b22c/x"), "/v#/a#b#c/x");
  EXPECT_EQ(path_class("/"), "/");
  EXPECT_EQ(path_class("/orders/"), "/orders/");
  EXPECT_EQ(path_class("*"), "*");
  EXPECT_EQ(path_class("/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301/items"), "/o/#/items");
  EXPECT_EQ(path_class("/o/deadbeef07"), "/o/#");
  EXPECT_EQ(path_class("/facade/added"), "/facade/added");
  EXPECT_LE(path_class("/" + std::string(5000, 'x')).size(), 200u);
}

TEST(SplitTarget, KnowsEveryForm) {
  EXPECT_EQ(split_target("/a/b?x=/1?2").path, "/a/b");
  EXPECT_EQ(split_target("/a/b?x=/1?2").query, "x=/1?2");
  EXPECT_EQ(split_target("http://host:80/a?q").path, "/a");
  EXPECT_EQ(split_target("http://host").path, "/");
  EXPECT_EQ(split_target("http://host?q=1").path, "/");
  EXPECT_EQ(split_target("/redirect?to=http://other/x").path, "/redirect");
  EXPECT_EQ(split_target("*").path, "*");
  EXPECT_EQ(split_target("host:443").path, "host:443");
}

}  // namespace
}  // namespace leafcutter::node
