#include "scenarios/fault_kinds.hpp"
