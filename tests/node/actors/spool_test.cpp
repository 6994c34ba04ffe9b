#include "node/actors/spool.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace leafcutter::node;
using tests::Folder;

namespace {

/// Three batches of one, two and three events, as bytes on disk.
SpoolFile three_batches(const Folder& folder) {
  auto file = SpoolFile::create(folder.path(), "c/0/1#0@5");
  EXPECT_TRUE(file.ok());
  EXPECT_TRUE(file->append({"c/0/1#0@5", 0, 1, false}, "first").ok());
  EXPECT_TRUE(file->append({"c/0/1#0@5", 1, 2, false}, "second").ok());
  EXPECT_TRUE(file->append({"c/0/1#0@5", 3, 3, true}, std::string(5000, 'z')).ok());
  return std::move(*file);
}

}  // namespace

TEST(Spool, ComesBackAsItWasWritten) {
  const Folder folder;
  const auto path = three_batches(folder).path();
  EXPECT_EQ(spool_files(folder.path()), std::vector{path});
  const auto back = SpoolFile::recover(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->batches().size(), 3u);
  EXPECT_EQ(back->batches()[1].header.base, 1u);
  EXPECT_TRUE(back->batches()[2].header.last);
  EXPECT_EQ(*back->read(back->batches()[1]), "second");
  EXPECT_EQ(*back->read(back->batches()[2]), std::string(5000, 'z'));
}

TEST(Spool, ATornTailIsCutWhereverItWasTorn) {
  const Folder folder;
  auto original = three_batches(folder);
  const auto path = original.path();
  const auto bytes = *base::read_file(path);
  const auto ends = [&](std::size_t batch) {
    return original.batches()[batch].offset + original.batches()[batch].bytes;
  };
  for (std::size_t size = 0; size <= bytes.size(); size += size < ends(1) + 80 ? 1 : 97) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, size);
    const auto back = SpoolFile::recover(path);
    const std::size_t whole = size >= ends(2) ? 3 : size >= ends(1) ? 2 : size >= ends(0) ? 1 : 0;
    if (whole == 0) {
      ASSERT_FALSE(back.ok()) << size;
      continue;
    }
    ASSERT_TRUE(back.ok()) << size << ": " << back.error().message;
    ASSERT_EQ(back->batches().size(), whole) << size;
    ASSERT_EQ(std::filesystem::file_size(path), ends(whole - 1)) << "the tail is gone from the file too";
  }
}

TEST(Spool, AppendingGoesOnBehindTheCut) {
  const Folder folder;
  const auto path = three_batches(folder).path();
  const auto bytes = *base::read_file(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, bytes.size() - 1);
  {
    auto back = SpoolFile::recover(path);
    ASSERT_TRUE(back.ok());
    ASSERT_TRUE(back->append({"c/0/1#0@5", 3, 1, true}, "again").ok());
  }
  const auto back = SpoolFile::recover(path);
  ASSERT_EQ(back->batches().size(), 3u);
  EXPECT_EQ(*back->read(back->batches()[2]), "again");
}

TEST(Spool, DamageWithinEndsTheGoodPart) {
  const Folder folder;
  auto original = three_batches(folder);
  auto bytes = *base::read_file(original.path());
  bytes[original.batches()[1].offset] ^= 1;
  std::ofstream(original.path(), std::ios::binary | std::ios::trunc) << bytes;
  EXPECT_EQ(SpoolFile::recover(original.path())->batches().size(), 1u);
}

TEST(Spool, SealedItIsStillRead) {
  const Folder folder;
  auto file = three_batches(folder);
  file.seal();
  EXPECT_EQ(*file.read(file.batches()[0]), "first");
  file.remove();
  EXPECT_TRUE(spool_files(folder.path()).empty());
}
