#include "node/leaf/running.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/text.hpp"

namespace leafcutter::node {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// The state letter of /proc/.../stat: it follows the name in parentheses, which may hold anything.
bool runs(const fs::path& thread) {
  const auto text = base::read_file((thread / "stat").string());
  if (!text) return false;  // gone since the folder was listed
  const auto end = text->rfind(')');
  if (end == std::string::npos || end + 2 >= text->size()) return false;
  const char state = (*text)[end + 2];
  return state == 'R' || state == 'D';
}

}  // namespace

bool anything_runs() {
  const auto own = std::to_string(::gettid());
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end; process.increment(error)) {
    if (!is_number(process->path().filename().string())) continue;
    std::error_code gone;
    for (fs::directory_iterator thread(process->path() / "task", gone), last; !gone && thread != last;
         thread.increment(gone))
      if (thread->path().filename().string() != own && runs(thread->path())) return true;
  }
  return false;
}

}  // namespace leafcutter::node
