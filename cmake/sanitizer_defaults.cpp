// Part of every program of the preset asan: what the sanitizers' run-time libraries do when the environment says
// nothing else (ASAN_OPTIONS and UBSAN_OPTIONS come on top), and where reports of leaves go.
#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

// abort_on_error: a program that reports something, leaks included, would otherwise end with 1, which is also what
// `leafcutter run` ends with when it has found what it looked for.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:"
         "strict_init_order=1";
}

extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

// Of libubsan, in no header of g++'s.
extern "C" void __ubsan_get_current_report_data(const char** kind, const char** message, const char** file,
                                                unsigned* line, unsigned* column, char** address);

namespace {

int leaf_reports = -1;

void tell_report(const char* text) { ::dprintf(leaf_reports, "in a nursery or one of its leaves:\n%s", text); }

/// A nursery keeps of what its leaves write to standard error only the last line, and a report has many: it is told
/// where the nursery's own standard error goes, too. (Not by __sanitizer_set_report_fd, which does not outlast a fork.)
[[gnu::constructor]] void keep_reports_of_leaves(int argc, char** argv, char**) {
  if (argc != 2 || std::strcmp(argv[1], "leaf-nursery") != 0) return;
  leaf_reports = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 512);
  if (leaf_reports >= 0) __asan_set_error_report_callback(tell_report);
}

}  // namespace

extern "C" void __ubsan_on_report() {
  if (leaf_reports < 0) return;
  const char *kind = "", *message = "", *file = "";
  unsigned line = 0, column = 0;
  char* address = nullptr;
  __ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
  ::dprintf(leaf_reports, "in a nursery or one of its leaves: %s:%u:%u: %s: %s\n", file, line, column, kind, message);
}
