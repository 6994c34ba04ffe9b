#include "coordinator/actors/intake.hpp"
