// Bytes that wait in a pipe. A fault that only delays never looks at them, so that they need not be copied into the
// process and out again: they are spliced in when they arrive and spliced out when they are due.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "node/proxy/pipe_pool.hpp"

namespace leafcutter::node::proxy {

/// First in, first out, like every pipe: whoever holds parts of it takes them in that order.
class HeldPipe {
 public:
  HeldPipe(Pipe pipe, std::shared_ptr<PipePool> home) : pipe_(std::move(pipe)), home_(std::move(home)) {}
  /// Null when there is none to be had.
  static std::shared_ptr<HeldPipe> from(const std::shared_ptr<PipePool>& pool) {
    auto pipe = pool->take();
    return pipe ? std::make_shared<HeldPipe>(std::move(*pipe), pool) : nullptr;
  }
  ~HeldPipe() { home_->give_back(std::move(pipe_)); }
  HeldPipe(const HeldPipe&) = delete;
  HeldPipe& operator=(const HeldPipe&) = delete;

  std::size_t bytes() const { return pipe_.bytes; }

  /// As splice(2); EAGAIN when the socket has no bytes or the pipe no room.
  ssize_t fill_from(int socket, std::size_t most) {
    const auto count = ::splice(socket, nullptr, pipe_.in.get(), nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count > 0) pipe_.bytes += static_cast<std::size_t>(count);
    return count;
  }
  ssize_t empty_into(int socket, std::size_t most) {
    const auto count = ::splice(pipe_.out.get(), nullptr, socket, nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count > 0) pipe_.bytes -= static_cast<std::size_t>(count);
    return count;
  }
  /// The next bytes, which are known to be in it; false when they are not.
  bool read(char* to, std::size_t count) {
    while (count > 0) {
      const auto got = ::read(pipe_.out.get(), to, count);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      pipe_.bytes -= static_cast<std::size_t>(got);
      to += got;
      count -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  Pipe pipe_;
  std::shared_ptr<PipePool> home_;
};

}  // namespace leafcutter::node::proxy
