#include "node/leaf/launcher.hpp"
