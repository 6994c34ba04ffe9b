#include "coordinator/minimize/minimize.hpp"
