#include "actors/system.hpp"
