// What the image asks and costs: the bounds, bad folders, and copying only before a change.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "durable_fixture.hpp"

namespace leafcutter::node::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

bool fill_proc_file(const char* path, const std::string& text) {
  const base::UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

struct DurableBounds : DurableTest {
  /// Runs `body` in mount and user namespaces of its own; "<no namespaces>", or what it says.
  static std::string in_namespaces(const std::function<std::string()>& body);
};

std::string DurableBounds::in_namespaces(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const base::UniqueFd out(ends[0]);
  base::UniqueFd in(ends[1]);
  const auto child = ::fork();
  if (child == 0) {
    std::string said = "<no namespaces>";
    const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && fill_proc_file("/proc/self/uid_map", "0 " + user + " 1") &&
        fill_proc_file("/proc/self/setgroups", "deny") && fill_proc_file("/proc/self/gid_map", "0 " + group + " 1") &&
        ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
      said = body();
    if (HasFailure()) said += " (and an expectation above failed)";
    const auto written = ::write(in.get(), said.data(), said.size());
    ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  in.reset();
  std::string said;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(out.get(), piece, sizeof piece)) > 0;)
    said.append(piece, static_cast<std::size_t>(got));
  ::waitpid(child, nullptr, 0);
  return said;
}

TEST_F(DurableBounds, BadFoldersAreRefused) {
  using Created = base::Expected<DurableImage>;
  const auto refusal = [](const Created& created) { return created ? std::string() : created.error().text(); };
  EXPECT_THAT(refusal(DurableImage::create(scratch / "none", scratch.image())),
              HasSubstr("data folder " + (scratch / "none") + " is not there"));
  EXPECT_THAT(refusal(DurableImage::create(scratch.data(), scratch / "inside")),
              HasSubstr("is in the data folder; an empty folder outside the data folder would do"));
  EXPECT_FALSE(there("inside"));
  start();
  write("a", "x");
  sync("a");
  EXPECT_THAT(refusal(DurableImage::create(scratch.data(), scratch.image())), HasSubstr("holds 1; an empty folder"));
}

TEST_F(DurableBounds, CopiedBeforeAChangeIsAsGoodAsCopiedAtTheStart) {
  write("written", "old");
  write("removed", "old");
  write("replaced", "old");
  write("untouched", std::string(8 * durable_page_bytes, 'u'));
  const auto before = picture(scratch.data());
  start(DurableImage::Capture::before_change);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.image()));
  for (const auto* name : {"written", "removed", "replaced", "new", "no/such"}) {
    const auto told = image->about_to_change(scratch / name);
    EXPECT_TRUE(told) << told.error().text();
  }
  write("written", "new");
  remove("removed");
  write("new", "x");
  move("new", "replaced");
  move("untouched", "elsewhere");
  const auto lost = lose_power();
  EXPECT_EQ(picture(scratch.data()), before);
  EXPECT_THAT(lost.unannounced, IsEmpty());
  std::size_t copies = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(scratch.image())) ++copies;
  EXPECT_EQ(copies, 3U);
}

TEST_F(DurableBounds, ASecondAnnouncementCopiesNothing) {
  write("a", "old");
  start(DurableImage::Capture::before_change);
  ASSERT_TRUE(image->about_to_change("a"));
  write("a", "new");
  ASSERT_TRUE(image->about_to_change("a"));
  const auto lost = lose_power();
  EXPECT_EQ(read("a"), "old");
  EXPECT_THAT(lost.unannounced, IsEmpty());
}

TEST_F(DurableBounds, AChangeThatWasNotAnnouncedIsTold) {
  write("changed", "old");
  write("removed", "old");
  write("late", "old");
  start(DurableImage::Capture::before_change);
  write("changed", "longer");
  remove("removed");
  write("late", "longer");
  ASSERT_TRUE(image->about_to_change("late"));
  const auto lost = lose_power();
  EXPECT_THAT(lost.unannounced, testing::UnorderedElementsAre("changed", "removed", "late"));
  EXPECT_THAT(lost.text(), HasSubstr("not announced: "));
  EXPECT_THAT(lose_power().unannounced, IsEmpty());
}

TEST_F(DurableBounds, TenThousandFilesAreNoTrouble) {
  constexpr int count = 10'000;
  const auto name = [](int i) { return "d" + std::to_string(i % 50) + "/f" + std::to_string(i); };
  for (int i = 0; i < 50; ++i) folder("d" + std::to_string(i));
  for (int i = 0; i < count; ++i) write(name(i), std::to_string(i));
  start();
  for (int i = 0; i < count; i += 7) write(name(i), "changed");
  for (int i = 3; i < count; i += 7) remove(name(i));
  for (int i = 5; i < count; i += 7) move(name(i), name(i) + ".moved");
  for (int i = 0; i < 50; ++i) write(name(i) + ".new", "new");
  sync(name(7));
  const auto lost = lose_power();
  EXPECT_EQ(read(name(7)), "changed");
  EXPECT_EQ(lost.files_changed, 1429U - 1U);
  EXPECT_EQ(lost.names_returned, 1429U + 1428U);
  EXPECT_EQ(lost.names_lost, 1428U + 50U);
  EXPECT_THAT(lost.lost, testing::SizeIs(PowerLoss::listed));
  for (int i = 0; i < count; ++i) ASSERT_EQ(read(name(i)), i == 7 ? "changed" : std::to_string(i));
}

TEST_F(DurableBounds, AServiceThatGoesOnMeanwhileIsNoError) {
  folder("d");
  write("log", "x");
  start();
  const auto log = open("log");
  std::atomic<bool> ended = false;
  std::thread service([&] {
    for (int i = 0; i < 4000; ++i) {
      const auto name = std::to_string(i % 7), folder_name = "d/" + std::to_string(i % 3);
      write(name, std::string(static_cast<std::size_t>(i % 5) * 3000, 'x'));
      ::mkdir((scratch / folder_name).c_str(), 0755);
      ::rename((scratch / name).c_str(), (scratch / (folder_name + "/" + name)).c_str());
      ::rename((scratch / folder_name).c_str(), (scratch / "d/3").c_str());
      ::unlink((scratch / ("d/3/" + name)).c_str());
      ::rmdir((scratch / "d/3").c_str());
      if (::ftruncate(log.get(), i % 11 * 4000) != 0) break;
    }
    ended = true;
  });
  int rounds = 0;
  while (!ended) {
    for (const auto& done : {image->synced(log.get()), image->synced("d"), image->synced("."), image->synced_all()})
      EXPECT_TRUE(done) << done.error().text();
    const auto dropped = image->sync_failed(log.get());
    EXPECT_TRUE(dropped) << dropped.error().text();
    ++rounds;
  }
  service.join();
  EXPECT_GT(rounds, 1);
  lose_power();
  const auto left = picture(scratch.data());
  EXPECT_FALSE(lose_power().changed_anything());
  EXPECT_EQ(picture(scratch.data()), left);
}

TEST_F(DurableBounds, WhatIsMountedInsideIsLeftAlone) {
  folder("mounted");
  write("a", "old");
  const auto said = in_namespaces([&]() -> std::string {
    if (::mount("tmpfs", (scratch / "mounted").c_str(), "tmpfs", 0, nullptr) != 0) return "<no namespaces>";
    write("mounted/kept", "kept");
    start();
    write("mounted/kept", "changed");
    write("mounted/new", "new");
    write("a", "new");
    sync("mounted/new");
    if (const auto all = image->synced_all(); !all) return all.error().text();
    write("a", "lost");
    write("mounted/kept", "again");
    lose_power();
    return read("a") + " " + read("mounted/kept") + " " + read("mounted/new");
  });
  if (said == "<no namespaces>") GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(said, "new again new");
}

TEST_F(DurableBounds, AFileThatOnlyLooksLikeOneOfOursIsLetPass) {
  // Another folder is mounted over the data folder: the descriptor's path is that of a file in ours.
  write("a", "old");
  const DurableScratch other;
  const auto said = in_namespaces([&]() -> std::string {
    start();
    if (::mount(other.data().c_str(), scratch.data().c_str(), nullptr, MS_BIND, nullptr) != 0) return "<no namespaces>";
    const auto fd = open("a");
    if (::pwrite(fd.get(), "foreign", 7, 0) != 7) return "not written";
    const auto held = picture(scratch.image());
    sync(fd.get());
    return picture(scratch.image()) == held ? "let pass" : "taken for ours";
  });
  if (said == "<no namespaces>") GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(said, "let pass");
}

TEST_F(DurableBounds, FilesWithoutANameAreKeptUpToABound) {
  start();
  const base::UniqueFd first(::open(scratch.data().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!first) GTEST_SKIP() << "no O_TMPFILE here";
  std::vector<base::UniqueFd> open_files;
  for (std::size_t i = 0; i < DurableImage::max_unnamed + 10; ++i) {
    open_files.emplace_back(::open(scratch.data().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(::write(open_files.back().get(), "x", 1), 1);
    sync(open_files.back().get());
  }
  std::size_t copies = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(scratch.image())) ++copies;
  EXPECT_EQ(copies, DurableImage::max_unnamed);
  open_files.clear();
  lose_power();
  EXPECT_TRUE(std::filesystem::is_empty(scratch.image()));
}

}  // namespace
}  // namespace leafcutter::node::tests
