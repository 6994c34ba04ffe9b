// Services of the tests' scenarios, in Python.
#pragma once

namespace leafcutter::node::testing {

/// Echoes what comes on TCP port 7000, for as long as its connections last.
inline constexpr const char* echo_program = R"(
import socket, threading
def serve(c):
  try:
    while True:
      b = c.recv(100)
      if not b: break
      c.sendall(b)
  except OSError:
    pass
  c.close()
s = socket.create_server(("0.0.0.0", 7000))
while True:
  c, _ = s.accept()
  threading.Thread(target=serve, args=(c,), daemon=True).start()
)";

/// Answers datagrams on port 5300 of the address that it is given with the same in capitals; says "ready".
inline constexpr const char* capitals_program = R"(
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 5300))
print("ready", flush=True)
while True:
  b, who = s.recvfrom(2000)
  s.sendto(b.upper(), who)
)";

}  // namespace leafcutter::node::testing
