#include "protocols/event.hpp"
