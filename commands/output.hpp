// What the commands say, and where: results on standard output, everything else on standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::commands {

/// "error: scenario.yaml:3:5: ..." on standard error.
void print_error(const base::Error& error);
void print_warning(const base::Error& warning);

/// All of `text` to standard output; false when that failed (a full disk, a closed pipe).
bool print(std::string_view text);

bool is_terminal(int fd);

/// The exit code that an error stands for: 2 for the user's input, 3 for everything that is ours or the host's.
int exit_code_of(const base::Error& error);

/// Prints it; returns its exit code, for `return fail(...)`.
int fail(const base::Error& error);

}  // namespace leafcutter::commands
