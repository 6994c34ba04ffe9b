// Which object a call is said to act on: relative paths, descriptors, links, two paths; and what cannot be said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness.hpp"
#include "node/syscalls/address.hpp"
#include "node/syscalls/calls.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node::tests {
namespace {

Outcome observe(const ScratchFolder& folder, const std::vector<std::string>& families, std::vector<std::string> steps,
                const std::string& working_folder = "") {
  steps.insert(steps.begin(), program("steps"));
  return run(steps, {.families = families, .data_folder = folder.path(), .working_folder = working_folder});
}

TEST(Calls, EveryCallOfEveryFamilyHasAnObject) {
  for (const auto& family : scenarios::syscall_families())
    for (const auto& call : family.calls) EXPECT_NE(call_shape(call), nullptr) << call;
}

TEST(Objects, RelativePathsStartFromTheWorkingFolder) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "sub");
  const auto outcome = observe(folder, {"open", "mkdir"},
                               {"open,a,0644", "chdir,sub", "open,../b,0644", "mkdir,./c/../d,0755"}, folder.path());
  ASSERT_TRUE(outcome.exited_well()) << outcome.output;
  EXPECT_EQ(outcome.count("open", "data:a"), 1u);
  EXPECT_EQ(outcome.count("open", "data:b"), 1u);
  EXPECT_EQ(outcome.count("mkdir", "data:sub/d"), 1u);
}

TEST(Objects, RelativePathsStartFromTheFolderDescriptor) {
  const ScratchFolder folder, elsewhere;
  const auto outcome =
      observe(folder, {"open", "rename", "unlink", "mkdir"},
              {"openat," + folder.path() + ",a", "renameat," + folder.path() + ",a,b",
               "unlinkat," + folder.path() + ",b", "mkdirat," + folder.path() + ",c", "openat2," + folder.path() + ",d",
               "openat," + elsewhere.path() + ",a", "unlinkat," + elsewhere.path() + ",a"});
  ASSERT_TRUE(outcome.exited_well()) << outcome.output;
  EXPECT_EQ(outcome.count("open", "data:a"), 1u);
  EXPECT_EQ(outcome.count("open", "data:d"), 1u);
  EXPECT_EQ(outcome.count("rename", "data:b"), 1u);
  EXPECT_EQ(outcome.count("unlink", "data:b"), 1u);
  EXPECT_EQ(outcome.count("mkdir", "data:c"), 1u);
  EXPECT_EQ(outcome.count("open", "data:."), 5u) << "opening the folder itself, and never the other one";
}

TEST(Objects, TheSiteOfTwoPathsIsTheNewOne) {
  const ScratchFolder folder;
  const auto a = folder / "a", b = folder / "b", c = folder / "c", d = folder / "d", e = folder / "e";
  const auto outcome = observe(folder, {"rename"},
                               {"write," + a + ",x", "rename," + a + "," + b, "renameat2," + b + "," + c,
                                "link," + c + "," + d, "linkat," + c + "," + e});
  EXPECT_THAT(outcome.output, testing::HasSubstr("linkat 0 0"));
  for (const auto* name : {"data:b", "data:c", "data:d", "data:e"})
    EXPECT_EQ(outcome.count("rename", name), 1u) << name;
  EXPECT_EQ(outcome.sites(), 4u);
}

TEST(Objects, APathMayEndWhereTheMemoryEnds) {
  const ScratchFolder folder;
  const auto outcome = observe(folder, {"open"}, {"edge," + (folder / "a-name-at-the-edge")});
  EXPECT_EQ(outcome.output, "edge 0 0\n");
  EXPECT_EQ(outcome.count("open", "data:a-name-at-the-edge"), 1u);
}

TEST(Objects, AFolderReachedByALinkIsTheDataFolder) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink(folder / "real", folder / "data");
  const auto outcome = run({program("steps"), "write," + (folder / "data/a") + ",x"},
                           {.families = {"write", "open"}, .data_folder = folder / "data"});
  EXPECT_EQ(outcome.count("open", "data:a"), 1u);
  EXPECT_EQ(outcome.count("write", "data:a"), 1u) << "descriptors are named by the real path";
}

TEST(Objects, ARemovedFileKeepsItsName) {
  const ScratchFolder folder;
  const auto outcome = observe(folder, {"write"}, {"write-removed," + (folder / "gone") + ",x"});
  EXPECT_EQ(outcome.count("write", "data:gone"), 1u);
}

TEST(Objects, MappingsAndCopiesAreNamedByTheirFile) {
  const ScratchFolder folder;
  const auto a = folder / "a";
  const auto outcome = observe(folder, {"write", "fsync"},
                               {"msync," + a + ",mapped", "sendfile," + a + "," + (folder / "b"),
                                "copy," + a + "," + (folder / "c"), "splice," + (folder / "d") + ",piped"});
  EXPECT_EQ(outcome.output, "msync 0 0\nsendfile 6 0\ncopy 6 0\nsplice 5 0\n");
  EXPECT_EQ(outcome.count("fsync", "data:a"), 1u);
  for (const auto* name : {"data:b", "data:c", "data:d"}) EXPECT_EQ(outcome.count("write", name), 1u) << name;
}

TEST(Objects, AFifoInTheDataFolderIsNoFile) {
  const ScratchFolder folder;
  const auto outcome = run({"sh", "-c", "mkfifo p && exec 3<>p && echo x >&3 && echo x >f"},
                           {.families = {"write"}, .data_folder = folder.path(), .working_folder = folder.path()});
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.count("write", "data:f"), 1u);
  EXPECT_EQ(outcome.sites(), 1u);
}

TEST(Objects, GlobsAddPaths) {
  const ScratchFolder folder, elsewhere;
  const auto outcome =
      run({program("steps"), "write," + (elsewhere / "x.conf") + ",1", "write," + (elsewhere / "x.log") + ",1"},
          {.families = {"write"}, .data_folder = folder.path(), .path_globs = {elsewhere / "*.conf"}});
  EXPECT_EQ(outcome.sites(), 1u);
}

TEST(Unresolved, FiresNothingAndIsSaidAFewTimesOnly) {
  const ScratchFolder folder;
  std::vector<std::string> steps(9, "bad-path");
  steps.insert(steps.begin(), program("steps"));
  steps.push_back("bad-descriptor");
  const auto outcome = run(steps, {.families = {"open", "write"},
                                   .data_folder = folder.path(),
                                   .faults = {fault("errno", "open", "", 1, {{"error", "EIO"}}),
                                              fault("errno", "write", "", 1, {{"error", "EIO"}})}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_THAT(outcome.output, testing::StartsWith("bad-path -1 14\n"));
  EXPECT_THAT(outcome.output, testing::EndsWith("bad-descriptor -1 9\n"));
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
  EXPECT_EQ(outcome.sites(), 0u);
  std::vector<std::string> said;
  EXPECT_TRUE(outcome.of_kind("syscall").empty());
  for (const auto& event : outcome.of_kind("unresolved")) {
    EXPECT_THAT(event.attrs["why"].get<std::string>(), testing::HasSubstr(" "));
    said.push_back(event.attrs["call"].get<std::string>() + std::to_string(event.attrs["n"].get<int>()));
  }
  EXPECT_EQ(said, (std::vector<std::string>{"open1", "open2", "open4", "open8", "write1"}));
}

TEST(Addresses, AreReadAsText) {
  using namespace std::string_literals;
  EXPECT_EQ(*address_text("\x02\x00\x1b\x5a\x0a\x4d\x00\x02\0\0\0\0\0\0\0\0"s), "10.77.0.2:7002");
  const auto v6 = "\x0a\x00\x00\x50\0\0\0\0"s;
  EXPECT_EQ(*address_text(v6 + "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0"s), "[::1]:80");
  EXPECT_EQ(*address_text(v6 + "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\0\0\0\0"s), "127.0.0.1:80");
  EXPECT_EQ(*address_text("\x01\x00/run/x\0junk"s), "unix:/run/x");
  EXPECT_EQ(*address_text("\x01\0\0"s + "abstract"), "unix:@abstract");
  EXPECT_FALSE(address_text("\x02\x00\x1b"s));
  EXPECT_FALSE(address_text("\x02"s));
  EXPECT_FALSE(address_text("\x10\0"s + "aaaaaaaaaaaaaaaa")) << "netlink";
}

}  // namespace
}  // namespace leafcutter::node::tests
