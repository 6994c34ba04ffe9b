#include "coordinator/finding.hpp"
