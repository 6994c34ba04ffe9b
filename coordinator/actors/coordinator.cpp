#include "coordinator/actors/coordinator.hpp"
