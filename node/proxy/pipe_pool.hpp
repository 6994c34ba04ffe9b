// Pipes for splice(2). A flow has one only while bytes are in it; empty ones go round.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
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

  PipePool() {
    rlimit descriptors{};
    ::getrlimit(RLIMIT_NOFILE, &descriptors);
    most_ = std::clamp<std::size_t>(descriptors.rlim_cur / descriptors_a_pipe, 4, most_pipes);
  }

  /// Nothing when there are too few descriptors, or too many pipes: then bytes are copied.
  std::optional<Pipe> take() {
    if (!idle_.empty()) {
      auto pipe = std::move(idle_.back());
      idle_.pop_back();
      return pipe;
    }
    if (made_ >= most_) return std::nullopt;
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return std::nullopt;
    ++made_;
    Pipe pipe{base::UniqueFd(fds[0]), base::UniqueFd(fds[1]), 0};
    ::fcntl(fds[1], F_SETPIPE_SZ, pipe_bytes);  // less would do
    return pipe;
  }
  /// Every pipe comes back here: one with bytes in it, which nobody wants any more, to be closed.
  void give_back(Pipe pipe) {
    if (!pipe.in) return;
    if (pipe.bytes == 0 && idle_.size() < most_idle)
      idle_.push_back(std::move(pipe));
    else
      --made_;
  }
  /// When descriptors are scarce.
  void clear() {
    made_ -= idle_.size();
    idle_.clear();
  }
  std::size_t made() const { return made_; }

 private:
  static constexpr std::size_t most_idle = 32;
  /// At most a quarter of the process's descriptors, and half of the pages that one user's pipes may have by default
  /// (fs.pipe-user-pages-soft).
  static constexpr std::size_t descriptors_a_pipe = 8, most_pipes = 128;
  std::size_t most_, made_ = 0;
  std::vector<Pipe> idle_;
};

}  // namespace leafcutter::node::proxy
