// spawner HOW PROGRAM ARGUMENT...: runs PROGRAM in a child made by "vfork" or "posix_spawn" and exits as it does.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  pid_t child = -1;
  if (std::string(argv[1]) == "vfork") {
    child = ::vfork();
    if (child == 0) {
      ::execv(argv[2], argv + 2);
      ::_exit(127);
    }
  } else if (::posix_spawn(&child, argv[2], nullptr, nullptr, argv + 2, environ) != 0) {
    return 3;
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 4;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}
