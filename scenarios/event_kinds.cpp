#include "scenarios/event_kinds.hpp"
