// sockets HOW PORT [TEXT]: connects to 127.0.0.1:PORT by TCP and sends TEXT with HOW (send, sendmsg, write, writev), or
// only connects ("connect"); "unix" sends TEXT over a socket pair; "serve" takes a connection of its own child on PORT
// and receives its TEXT. Prints "verb result errno" for each call.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace {

void say(const char* verb, long result) {
  std::printf("%s %ld %d\n", verb, result, result < 0 ? errno : 0);
  std::fflush(stdout);
}

long send_by(const std::string& how, int fd, std::string text) {
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (how == "sendmsg") return ::sendmsg(fd, &message, 0);
  if (how == "write") return ::write(fd, text.data(), text.size());
  if (how == "writev") return ::writev(fd, &part, 1);
  return ::send(fd, text.data(), text.size(), 0);
}

sockaddr_in loopback(const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int serve(sockaddr_in address, const std::string& text) {
  const auto server = ::socket(AF_INET, SOCK_STREAM, 0);
  socklen_t size = sizeof address;
  if (::bind(server, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(server, 1) != 0) return 1;
  ::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size);
  if (::fork() == 0) {
    const auto fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
    ::_exit(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) > 0 ? 0 : 1);
  }
  const auto accepted = ::accept(server, nullptr, nullptr);
  say("accept", accepted < 0 ? -1 : 0);
  if (accepted < 0) return 0;
  char buffer[64];
  say("recv", ::recv(accepted, buffer, sizeof buffer, 0));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argv[1];
  const std::string text = argc > 3 ? argv[3] : "";
  if (how == "unix") {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    say("unix", ::send(ends[0], text.data(), text.size(), 0));
    return 0;
  }
  const auto to = loopback(argv[2]);
  if (how == "serve") return serve(to, text);
  const auto fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  say("connect", connected);
  if (connected == 0 && how != "connect") say(how.c_str(), send_by(how, fd, text));
  return 0;
}
