#include "node/syscalls/supervisor.hpp"
