#include "coordinator/search/epochs.hpp"
