#include "node/actors/courier.hpp"
