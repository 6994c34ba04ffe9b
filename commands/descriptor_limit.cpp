#include "commands/descriptor_limit.hpp"

#include <sys/resource.h>

namespace leafcutter::commands {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace leafcutter::commands
