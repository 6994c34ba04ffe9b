// Runs one self-test in a forked child, so that whatever it does to itself (namespaces, filters, mounts) ends with it.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

namespace leafcutter::node {

/// What a self-test's child says. Plain data: the child of a threaded process must not allocate.
struct TestReport {
  int error = 0;            ///< errno of the step that failed; 0 when all was seen
  char step[96] = {};       ///< which step that was
  char observed[160] = {};  ///< what was seen

  /// Notes a failed step; for `return failed(...)`.
  void failed(std::string_view what, int why = errno);
  void saw(std::string_view what);
  bool seen() const { return error == 0 && observed[0] != '\0'; }
};

/// The test's own part of a child; `context` is handed through.
using TestBody = void (*)(TestReport& report, void* context);
/// What the parent does while the child runs; may be null.
using TestCompanion = void (*)(int child, void* context);

/// Forks, runs `body` in the child and returns its report. A child that takes longer than 5 s is killed and reported.
TestReport run_self_test(TestBody body, void* context = nullptr, TestCompanion companion = nullptr);

}  // namespace leafcutter::node
