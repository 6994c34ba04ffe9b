// Where a run keeps what it keeps, and the folder of its sockets.
#pragma once

#include <string>
#include <utility>

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

/// Removes, at its end, the run and the spool folder of a command that keeps nothing in them, and the folders around
/// them when nobody else has one there.
class FoldersRemoval {
 public:
  explicit FoldersRemoval(Folders folders) : folders_(std::move(folders)) {}
  ~FoldersRemoval();
  FoldersRemoval(const FoldersRemoval&) = delete;
  FoldersRemoval& operator=(const FoldersRemoval&) = delete;

 private:
  Folders folders_;
};

/// Our own binary, for the leaves' launcher.
std::string own_program();

}  // namespace leafcutter::commands
