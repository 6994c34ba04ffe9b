// The process between us and a program that runs under rules on the host itself. It is the parent of the program and
// the reaper of everything below it, so that all of it can be found; it ends all of it when it is told to, and when we
// are gone, however we died. It has no threads, is under no filter, and no signal of the terminal reaches it.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

struct WardJob {
  std::vector<std::string> argv;
  std::string folder;               ///< working folder; empty: ours
  std::vector<sock_filter> filter;  ///< empty: none
  sigset_t mask{};                  ///< signals that are blocked when the program begins
  bool ignore_pipe = false;         ///< SIGPIPE is ignored when the program begins
  std::string scratch;              ///< a folder of ours that is removed when we died; empty: none
};

class Ward {
 public:
  /// Single-threaded callers only: the ward goes on without exec. When it returns, the program waits for its listener's
  /// supervisor or has begun. Errors: io, unavailable (the filter).
  static base::Expected<Ward> start(const WardJob& job);

  Ward(Ward&&) noexcept = default;
  Ward& operator=(Ward&&) noexcept = default;

  base::UniqueFd& listener() { return listener_; }

  /// Readable when there is something to be told, and when the ward has gone.
  int news() const { return line_.get(); }
  struct News {
    enum class What { nothing, program_ended, all_ended, ward_died } what = What::nothing;
    int status = 0;  ///< wait status of the program
  };
  /// Without waiting.
  News next();

  /// Why the program was not executed: the step that failed and its errno; nothing while that is not known.
  struct Refusal {
    std::string step;
    int error = 0;
    bool not_found() const;
  };
  std::optional<Refusal> refusal() const;

  /// To the program, or once it has ended to everything that it left behind. From the owner's thread.
  void forward(int signal);

  /// The following are for one other thread, the supervisor's.

  /// Kills everything; returns when nothing is left. False: something is, after 10 s.
  bool end_all();
  unsigned stop_all();
  void continue_all();

 private:
  struct Shared;
  struct Unmap {
    void operator()(Shared* page) const;
  };
  struct Life;

  Ward() = default;
  base::Status take_listener();
  base::Expected<std::uint32_t> order(char what);

  std::unique_ptr<Shared, Unmap> shared_;
  pid_t pid_ = -1;
  base::UniqueFd line_, orders_, listener_;
  bool told_all_ = false;
};

}  // namespace leafcutter::node
