#include "coordinator/judge/judge.hpp"
