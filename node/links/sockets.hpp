// The few socket calls that a proxy makes itself, because what they return decides what the other side gets to see.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/unique_fd.hpp"

namespace leafcutter::node {

struct Moved {
  enum class Result { moved, end, again, failed };
  Result result = Result::again;
  std::size_t bytes = 0;
  int error = 0;
};

Moved receive(int fd, std::span<char> room);
Moved transmit(int fd, std::string_view bytes);

/// From now on closing the socket sends RST, and what was not sent yet is lost.
void reset_on_close(int fd);

/// What one write made is sent as it is: the proxy adds no delay of its own.
void send_at_once(int fd);

enum class Arrival { arrived, under_way, refused };

/// Whether the peer's kernel has acknowledged all that was sent, or has reset the connection.
Arrival arrival(int fd);

}  // namespace leafcutter::node
