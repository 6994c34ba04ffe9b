#include "coordinator/report/report.hpp"
