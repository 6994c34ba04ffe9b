#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "node/syscalls/resource.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {
namespace {

TEST(ResourceClass, OfTheDataFolderIsRelative) {
  EXPECT_EQ(resource_class("/data/orders.log", "/data", {}), "data:orders.log");
  EXPECT_EQ(resource_class("/data/", "/data", {}), "data:.");
  EXPECT_EQ(resource_class("/data/sub/./x/../orders.log", "/data/", {}), "data:sub/orders.log");
}

TEST(ResourceClass, OfOtherFoldersIsEmpty) {
  EXPECT_EQ(resource_class("/data2/orders.log", "/data", {}), "");
  EXPECT_EQ(resource_class("/data/../etc/passwd", "/data", {}), "");
  EXPECT_EQ(resource_class("/usr/lib/x.so", "/data", {}), "");
  EXPECT_EQ(resource_class("/x", "", {}), "");
}

TEST(ResourceClass, OfAPathThatAGlobExcludesIsEmpty) {
  const std::vector<std::string> globs = {"!/usr/*", "*"};
  EXPECT_EQ(resource_class("/usr/lib/x.so", "/srv/me", globs), "");
  EXPECT_EQ(resource_class("/opt/x", "/srv/me", globs), "/opt/x");
  EXPECT_EQ(resource_class("/usr/src/mine/a", "/usr/src/mine", globs), "data:a") << "the data folder comes first";
  EXPECT_EQ(resource_class("/usr/lib/x.so", "/", globs), "") << "the root folder is nobody's data folder";
  EXPECT_EQ(resource_class("/srv/x", "/", globs), "/srv/x");
}

TEST(ResourceClass, OfAGlobIsThePath) {
  EXPECT_EQ(resource_class("/var/spool/job-17/x", "/data", {"/etc/*", "/var/spool/*"}), "/var/spool/job-#/x");
  EXPECT_EQ(resource_class("/var/spoolx", "/data", {"/var/spool/*"}), "");
}

class NameClass : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(NameClass, ReplacesWhatVaries) { EXPECT_EQ(name_class(GetParam().first), GetParam().second); }

INSTANTIATE_TEST_SUITE_P(Varying, NameClass,
                         testing::Values(std::pair("temp-4711.aof", "temp-#.aof"),
                                         std::pair("00000000000000000017.log", "#.log"),
                                         std::pair("segment0017", "segment#"), std::pair("tmp.Xk29dQ", "tmp.#"),
                                         std::pair("tmp_obj_AbC12d", "tmp_obj_#"), std::pair("sedaBcDeF", "sedaBcDeF"),
                                         std::pair("sed.aBcDeF", "sed.#"), std::pair("tmpab_d3f9q", "tmp#"),
                                         std::pair("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "#"),
                                         std::pair("x-123e4567-e89b-12d3-a456-426614174000.db", "x-#.db")));

INSTANTIATE_TEST_SUITE_P(Stable, NameClass,
                         testing::Values(std::pair("orders.log", "orders.log"),
                                         std::pair("WriteAheadLog", "WriteAheadLog"),
                                         std::pair("orders.db-journal", "orders.db-journal"),
                                         std::pair("README", "README"), std::pair("CURRENT", "CURRENT"),
                                         std::pair("x.WalFile", "x.WalFile"),
                                         std::pair("MANIFEST-000005", "MANIFEST-#")));

TEST(ResourceClass, OfAContentAddressedStoreIsOneClass) {
  EXPECT_EQ(resource_class("/data/objects/9f/86d081884c7d659a2feaa0c55ad015a3bf4f1b", "/data", {}), "data:objects/#/#");
  EXPECT_EQ(resource_class("/data/objects/ab/86d081884c7d659a2feaa0c55ad015a3bf4f1b", "/data", {}), "data:objects/#/#");
  EXPECT_EQ(resource_class("/data/ab/orders.log", "/data", {}), "data:ab/orders.log");
}

TEST(ResourceClasses, RemembersAndForgetsWithoutChangingAnAnswer) {
  ResourceClasses classes("/data", {"/etc/shop*"});
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 5000; ++i) {
      const auto path = "/data/segment-" + std::to_string(i) + ".log";
      ASSERT_EQ(classes.of(path), "data:segment-#.log");
    }
  for (const std::string path :
       {"/data", "/data/", "/data/a/../b", "/data//c", "/database/d", "/etc/shop.conf", "/", "/etc/x"})
    for (int round = 0; round < 2; ++round)
      EXPECT_EQ(classes.of(path), resource_class(path, "/data", {"/etc/shop*"})) << path;
  EXPECT_EQ(classes.of("/data/a/../b"), "data:b");
  EXPECT_EQ(classes.of("/database/d"), "");
}

TEST(NormalPath, IsWhatTheStandardLibraryMakesOfIt) {
  for (const std::string path : {"", "/", "a", "/a", "/a/", "a/b", "/a//b", "/a/./b", "/a/b/..", "../a", "./a", "/..",
                                 "/a/.b", "/a/..b", "/a/b...", "a/", "/a/."}) {
    auto expected = std::filesystem::path(path).lexically_normal().string();
    while (expected.size() > 1 && expected.back() == '/') expected.pop_back();
    EXPECT_EQ(normal_path(path), expected) << path;
  }
}

}  // namespace
}  // namespace leafcutter::node
