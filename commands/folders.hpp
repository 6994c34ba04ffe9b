// Where a run keeps what it keeps, and the folder of its sockets.
#pragma once

#include <string>

#include "base/error.hpp"

namespace leafcutter::commands {

struct Folders {
  std::string out;    ///< absolute: ledger, traces, campaigns, reports
  std::string run;    ///< absolute and short enough for a socket's path: sockets of this process
  std::string spool;  ///< events that the coordinator has not acknowledged yet
};

/// Makes them (owner only). What an earlier process left in the run folder is removed; `part` tells processes that
/// share `out` apart.
base::Expected<Folders> make_folders(const std::string& out, const std::string& part);

/// Our own binary, for the leaves' launcher.
std::string own_program();

}  // namespace leafcutter::commands
