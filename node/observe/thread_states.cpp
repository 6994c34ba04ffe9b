#include "node/observe/thread_states.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace leafcutter::node {
namespace {

/// The state letter of a thread, see proc(5); 'X' when it is gone.
char thread_state(int tasks, pid_t thread) {
  const base::UniqueFd file(::openat(tasks, (std::to_string(thread) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return 'X';
  // pid (name) state ...; the name may hold anything.
  const auto* end = std::strrchr(text.data(), ')');
  return end == nullptr || end[1] == '\0' ? 'X' : end[2];
}

}  // namespace

std::vector<pid_t> numbers_in(int folder) {
  std::vector<pid_t> found;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(copy), ::closedir);
  if (!entries) {
    ::close(copy);
    return found;
  }
  while (const auto* entry = ::readdir(entries.get()))
    if (const auto number = static_cast<pid_t>(std::atoi(entry->d_name)); number > 0) found.push_back(number);
  return found;
}

base::UniqueFd folder_at(int parent, const std::string& name) {
  return base::UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

ThreadStates thread_states(int process) {
  ThreadStates states;
  const auto tasks = folder_at(process, "task");
  if (!tasks) return states;
  for (const auto thread : numbers_in(tasks.get())) {
    const char state = thread_state(tasks.get(), thread);
    if (state == 'Z' || state == 'X') continue;
    ++states.alive;
    if (state == 'T') ++states.stopped;
    if (state != 'T' && state != 't' && state != 'D') ++states.moving;
  }
  return states;
}

}  // namespace leafcutter::node
