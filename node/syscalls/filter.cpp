#include "node/syscalls/filter.hpp"
