#include "scenarios/model.hpp"
