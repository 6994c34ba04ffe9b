#include "node/host/self_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "base/unique_fd.hpp"

namespace leafcutter::node {
namespace {

constexpr int patience_ms = 5000;

template <std::size_t Size>
void copy(char (&into)[Size], std::string_view text) {
  const auto length = std::min(text.size(), Size - 1);
  text.copy(into, length);
  into[length] = '\0';
}

[[noreturn]] void be_child(TestBody body, void* context, int to_parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  TestReport report;
  body(report, context);
  if (report.error == 0 && report.observed[0] == '\0') report.failed("nothing was observed", EIO);
  ::_exit(::write(to_parent, &report, sizeof report) == sizeof report ? 0 : 1);
}

}  // namespace

void TestReport::failed(std::string_view what, int why) {
  error = why == 0 ? EIO : why;
  copy(step, what);
}

void TestReport::saw(std::string_view what) { copy(observed, what); }

TestReport run_self_test(TestBody body, void* context, TestCompanion companion) {
  TestReport report;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    report.failed("pipe");
    return report;
  }
  base::UniqueFd from_child(ends[0]), to_parent(ends[1]);
  // Not fork(), whose handlers may start a thread in the child (ThreadSanitizer's does): a process with two threads is
  // refused a user namespace by the kernel.
  const auto child = ::_Fork();
  if (child == 0) be_child(body, context, to_parent.get());
  if (child < 0) {
    report.failed("fork");
    return report;
  }
  to_parent.reset();
  if (companion != nullptr) companion(child, context);
  pollfd answer{from_child.get(), POLLIN, 0};
  int found = 0;
  do found = ::poll(&answer, 1, patience_ms);
  while (found < 0 && errno == EINTR);
  if (found <= 0) {
    report.failed("the self-test took more than 5 s", ETIMEDOUT);
  } else if (::read(from_child.get(), &report, sizeof report) != sizeof report) {
    report = {};
    report.failed("the self-test was killed", ECHILD);
  }
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return report;
}

}  // namespace leafcutter::node
