// The main function of every test program. Each gets a folder for temporary files of its own, in which the programs
// that it starts put theirs, too; a test that leaves something behind there fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <set>

#include "tests/support/folder.hpp"

namespace {

namespace fs = std::filesystem;

/// Names of what is in the folder for temporary files.
std::set<std::string> temporary_files() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
    names.insert(entry.path().filename().string());
  return names;
}

void expect_nothing_new(const std::set<std::string>& before) {
  for (const auto& name : temporary_files())
    if (before.count(name) == 0) ADD_FAILURE() << "it leaves " << name << " in the folder for temporary files";
}

class OwnTemporaryFolder final : public testing::Environment {
 public:
  void SetUp() override {
    outer_ = fs::temp_directory_path().string();
    folder_.emplace();
    ::chmod(folder_->path().c_str(), 01777);  // for everybody, as the one that it stands for
    use(folder_->path());
  }
  void TearDown() override {
    expect_nothing_new({});
    use(outer_);
    folder_.reset();
  }

 private:
  static void use(const std::string& folder) {
    for (const auto* name : {"TMPDIR", "TEST_TMPDIR"}) ::setenv(name, folder.c_str(), 1);
  }

  std::string outer_;
  std::optional<leafcutter::tests::Folder> folder_;
};

class LookAtWhatIsLeft final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = temporary_files(); }
  void OnTestEnd(const testing::TestInfo&) override { expect_nothing_new(before_); }
  std::set<std::string> before_;  // a suite's own, for instance
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::AddGlobalTestEnvironment(new OwnTemporaryFolder);
  testing::UnitTest::GetInstance()->listeners().Append(new LookAtWhatIsLeft);
  return RUN_ALL_TESTS();
}
