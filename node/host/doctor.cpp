#include "node/host/doctor.hpp"
