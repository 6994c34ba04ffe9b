#include "scenarios/verdict.hpp"
