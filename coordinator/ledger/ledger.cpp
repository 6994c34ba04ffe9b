#include "coordinator/ledger/ledger.hpp"
