// The least that can be called a service: answers every HTTP request on its port with 200, one connection at a time.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[1])));
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener, 16) != 0)
    return 1;
  constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  for (;;) {
    const int peer = ::accept(listener, nullptr, nullptr);
    if (peer < 0) continue;
    std::array<char, 4096> request{};
    if (::read(peer, request.data(), request.size()) > 0) (void)!::write(peer, answer.data(), answer.size());
    ::close(peer);
  }
}
