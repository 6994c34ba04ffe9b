// crash-after for every call that can be carried out for a task: the effect is there, the task never learned of it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

struct Case {
  std::string name;
  std::string family;
  std::string resource;
  std::string step;  ///< "@" is the data folder
  int result;
  std::function<bool(const std::string& folder)> effect;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::size_t size(const std::string& path) { return exists(path) ? std::filesystem::file_size(path) : 0; }
unsigned mode(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777u : 0;
}

std::vector<Case> cases() {
  const auto has = [](const std::string& name, const std::string& text) {
    return [=](const std::string& f) { return contents(f + "/" + name) == text; };
  };
  const auto there = [](const std::string& name) {
    return [=](const std::string& f) { return exists(f + "/" + name); };
  };
  const auto gone = [](const std::string& name) {
    return [=](const std::string& f) { return !exists(f + "/" + name); };
  };
  return {
      {"write", "write", "data:old", "write,@/old,++", 2, has("old", "0123456789++")},
      {"writev", "write", "data:old", "writev,@/old,abcd", 4, has("old", "0123456789abcd")},
      {"pwrite64", "write", "data:old", "pwrite,@/old,ab,3", 2, has("old", "012ab56789")},
      {"pwritev", "write", "data:old", "pwritev,@/old,abcd,3", 4, has("old", "012abcd789")},
      {"pwritev2", "write", "data:old", "pwritev2,@/old,abcd,3", 4, has("old", "012abcd789")},
      {"sendfile", "write", "data:new", "sendfile,@/old,@/new", 10, has("new", "0123456789")},
      {"copy_file_range", "write", "data:new", "copy,@/old,@/new", 10, has("new", "0123456789")},
      {"splice", "write", "data:new", "splice,@/new,piped", 5, has("new", "piped")},
      {"fsync", "fsync", "data:old", "fsync,@/old", 0, there("old")},
      {"fdatasync", "fsync", "data:old", "fdatasync,@/old", 0, there("old")},
      {"msync", "fsync", "data:new", "msync,@/new,mapped", 0, has("new", "mapped")},
      {"creat", "open", "data:new", "creat,@/new", 0, there("new")},
      {"open", "open", "data:new", "open,@/new,0777", 0, [](const std::string& f) { return mode(f + "/new") == 0751; }},
      {"open_truncates", "open", "data:old", "open,@/old,0644", 0, has("old", "")},
      {"open_missing_folder", "open", "data:no/new", "open,@/no/new,0644", -2, gone("no")},
      {"openat", "open", "data:new", "openat,@,new", 0, [](const std::string& f) { return mode(f + "/new") == 0640; }},
      {"openat2", "open", "data:new", "openat2,@,new", 0, there("new")},
      {"rename", "rename", "data:new", "rename,@/old,@/new", 0,
       [](const std::string& f) { return contents(f + "/new") == "0123456789" && !exists(f + "/old"); }},
      {"renameat", "rename", "data:new", "renameat,@,old,new", 0, gone("old")},
      {"renameat2", "rename", "data:new", "renameat2,@/old,@/new", 0, gone("old")},
      {"renameat2_refused", "rename", "data:old", "renameat2,@/old,@/old", -17, there("old")},
      {"link", "rename", "data:new", "link,@/old,@/new", 0, has("new", "0123456789")},
      {"linkat", "rename", "data:new", "linkat,@/old,@/new", 0, has("new", "0123456789")},
      {"symlinkat", "rename", "data:new", "symlinkat,old,@,new", 0, has("new", "0123456789")},
      {"unlink", "unlink", "data:old", "unlink,@/old", 0, gone("old")},
      {"unlinkat", "unlink", "data:old", "unlinkat,@,old", 0, gone("old")},
      {"unlink_link", "unlink", "data:link", "unlink,@/link", 0,
       [](const std::string& f) { return !std::filesystem::is_symlink(f + "/link") && exists(f + "/old"); }},
      {"rmdir", "unlink", "data:empty", "rmdir,@/empty", 0, gone("empty")},
      {"mkdir", "mkdir", "data:new", "mkdir,@/new/,0777", 0,
       [](const std::string& f) { return mode(f + "/new") == 0751; }},
      {"mkdirat", "mkdir", "data:new", "mkdirat,@,new", 0, there("new")},
      {"truncate", "truncate", "data:old", "truncate,@/old,4", 0, has("old", "0123")},
      {"truncate_by_link", "truncate", "data:link", "truncate,@/link,4", 0, has("old", "0123")},
      {"ftruncate", "truncate", "data:old", "ftruncate,@/old,5", 0, has("old", "01234")},
      {"fallocate", "allocate", "data:new", "fallocate,@/new,4096", 0,
       [](const std::string& f) { return size(f + "/new") == 4096; }},
  };
}

class CarriedOut : public testing::TestWithParam<Case> {
 protected:
  CarriedOut() {
    std::ofstream(folder_ / "old") << "0123456789";
    std::filesystem::create_directory(folder_ / "empty");
    std::filesystem::create_symlink("old", folder_ / "link");
  }
  std::vector<std::string> steps() const {
    auto step = GetParam().step;
    for (std::size_t at = 0; (at = step.find('@', at)) != std::string::npos;) step.replace(at, 1, folder_.path());
    return {program("steps"), "umask,026", step};
  }
  Outcome with(const std::string& kind) const {
    return run(steps(), {.families = {GetParam().family},
                         .data_folder = folder_.path(),
                         .faults = {fault(kind, GetParam().family, GetParam().resource)}});
  }
  ScratchFolder folder_;
};

TEST_P(CarriedOut, ThenKilled) {
  const auto outcome = with("crash-after");
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL) << outcome.output << outcome.failure;
  ASSERT_FALSE(outcome.fired().is_null());
  EXPECT_EQ(outcome.fired()["evidence"]["result"], GetParam().result);
  EXPECT_TRUE(GetParam().effect(folder_.path()));
  EXPECT_EQ(outcome.output, "umask 0 0\n");
}

/// The twin: the effect that ThenKilled saw is not there when the service is killed before the call.
TEST_P(CarriedOut, NotWhenKilledBefore) {
  const auto outcome = with("crash-before");
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL) << outcome.output;
  EXPECT_FALSE(outcome.fired().is_null());
  EXPECT_EQ(outcome.crashes, 1);
  const auto changes_nothing = GetParam().result < 0 || GetParam().family == "fsync";
  if (!changes_nothing) {
    EXPECT_FALSE(GetParam().effect(folder_.path()));
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, CarriedOut, testing::ValuesIn(cases()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace leafcutter::node::tests
