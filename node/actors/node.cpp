#include "node/actors/node.hpp"
