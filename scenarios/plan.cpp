#include "scenarios/plan.hpp"
