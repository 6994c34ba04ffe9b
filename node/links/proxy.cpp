#include "node/links/proxy.hpp"
