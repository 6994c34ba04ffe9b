#include "commands/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "scenarios/verdict.hpp"

namespace leafcutter::commands {

void print_error(const base::Error& error) { std::fprintf(stderr, "error: %s\n", error.text().c_str()); }
void print_warning(const base::Error& warning) { std::fprintf(stderr, "warning: %s\n", warning.text().c_str()); }

bool print(std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      std::fprintf(stderr, "error: %s\n", base::system_error("cannot write to standard output", errno).message.c_str());
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

int exit_code_of(const base::Error& error) {
  return error.code == base::ErrorCode::bad_input ? scenarios::exit_codes::bad_input
                                                  : scenarios::exit_codes::inconclusive;
}

int fail(const base::Error& error) {
  print_error(error);
  return exit_code_of(error);
}

}  // namespace leafcutter::commands
