// What a burst of datagrams needs while their reader has no processor: room in the socket.
#pragma once

#include <sys/socket.h>

namespace leafcutter::node::proxy {

/// The socket's queue holds so many bytes, or as many as the system lets it have (net.core.rmem_max).
inline void widen_receive_queue(int fd, int bytes) { ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); }

}  // namespace leafcutter::node::proxy
