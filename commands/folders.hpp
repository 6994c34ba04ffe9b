// Where a run keeps what it keeps, and the folder of its sockets.
#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"

namespace leafcutter::commands {

/// Folders that are nobody else's as long as this lives, and are removed with it.
class FoldersInUse;

struct Folders {
  std::string out;    ///< absolute: ledger, traces, campaigns, reports
  std::string run;    ///< absolute and short enough for a socket's path: sockets of this process; goes with it
  std::string spool;  ///< events that the coordinator has not acknowledged yet
  std::shared_ptr<const FoldersInUse> in_use;
};

enum class Keep {
  spool,    ///< what is not acknowledged is sent by the next process of the same part
  nothing,  ///< each process has folders of its own
};

/// Makes them (owner only). What killed processes left there is removed; `part` tells processes that share `out` apart.
/// Errors: conflict, when a process of that part is alive; io.
base::Expected<Folders> make_folders(const std::string& out, const std::string& part, Keep keep = Keep::spool);

/// Our own binary, for the leaves' launcher.
std::string own_program();

}  // namespace leafcutter::commands
