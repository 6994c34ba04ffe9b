// descriptors: prints what every open descriptor of this process is, one a line.
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <string>

int main() {
  auto* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 1;
  while (const auto* found = ::readdir(folder)) {
    char name[PATH_MAX] = {};
    const auto path = std::string("/proc/self/fd/") + found->d_name;
    if (::readlink(path.c_str(), name, sizeof name - 1) > 0) std::printf("%s %s\n", found->d_name, name);
  }
  ::closedir(folder);
  return 0;
}
