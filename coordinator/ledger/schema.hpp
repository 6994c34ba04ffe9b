// The ledger's tables and how an older ledger becomes a newer one.
#pragma once

#include "base/error.hpp"
#include "coordinator/ledger/sqlite.hpp"

namespace leafcutter::coordinator {

/// Brings the database to the newest schema. Errors: bad_input (it is newer than this program), io.
base::Status migrate(Database& database);

}  // namespace leafcutter::coordinator
