#include "scenarios/predicate.hpp"
