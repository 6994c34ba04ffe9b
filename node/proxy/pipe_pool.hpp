// Pipes for splice(2). A flow has one only while bytes are in it; empty ones go round.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace leafcutter::node::proxy {

struct Pipe {
  base::UniqueFd out, in;
  std::size_t bytes = 0;  ///< in it
};

class PipePool {
 public:
  static constexpr int pipe_bytes = 256 << 10;

  /// Nothing when there are no descriptors: then bytes are copied.
  std::optional<Pipe> take() {
    if (!idle_.empty()) {
      auto pipe = std::move(idle_.back());
      idle_.pop_back();
      return pipe;
    }
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return std::nullopt;
    Pipe pipe{base::UniqueFd(fds[0]), base::UniqueFd(fds[1]), 0};
    ::fcntl(fds[1], F_SETPIPE_SZ, pipe_bytes);  // less would do
    return pipe;
  }
  /// Empty ones only; others are to be closed.
  void give_back(Pipe pipe) {
    if (pipe.bytes == 0 && idle_.size() < most_idle) idle_.push_back(std::move(pipe));
  }
  /// When descriptors are scarce.
  void clear() { idle_.clear(); }

 private:
  static constexpr std::size_t most_idle = 16;
  std::vector<Pipe> idle_;
};

}  // namespace leafcutter::node::proxy
