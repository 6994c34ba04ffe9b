#include "protocols/stream.hpp"
