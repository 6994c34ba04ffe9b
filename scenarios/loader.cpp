#include "scenarios/loader.hpp"
