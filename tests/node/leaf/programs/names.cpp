// A small HTTP service that looks names up as any program does: GET /names/HOST asks getaddrinfo() and says what it
// said, as {"error": "...", "addresses": [...]}; GET /health answers at once.
//   names PORT
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace {

const char* name_of_error(int error) {
  switch (error) {
    case 0: return "";
    case EAI_AGAIN: return "EAI_AGAIN";
    case EAI_NONAME: return "EAI_NONAME";
    case EAI_NODATA: return "EAI_NODATA";
    case EAI_FAIL: return "EAI_FAIL";
    default: return "another";
  }
}

std::string look_up(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  std::string addresses;
  for (auto* one = found; error == 0 && one != nullptr; one = one->ai_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (one->ai_family == AF_INET)
      inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_addr, text, sizeof text);
    else
      inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(one->ai_addr)->sin6_addr, text, sizeof text);
    addresses += (addresses.empty() ? "\"" : ",\"") + std::string(text) + "\"";
  }
  if (found != nullptr) freeaddrinfo(found);
  return std::string("{\"error\":\"") + name_of_error(error) + "\",\"addresses\":[" + addresses + "]}";
}

void serve(int fd) {
  std::string request;
  char buffer[2048];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const auto n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    request.append(buffer, static_cast<std::size_t>(n));
  }
  const auto begin = request.find(" /"), end = request.find(' ', begin + 1);
  std::string body = "{}";
  if (begin != std::string::npos && end != std::string::npos) {
    const auto path = request.substr(begin + 1, end - begin - 1);
    if (path.rfind("/names/", 0) == 0) body = look_up(path.substr(7));
  }
  const auto reply =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\nConnection: close\r\n\r\n" + body;
  [[maybe_unused]] const auto written = write(fd, reply.data(), reply.size());
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080));
  if (bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || listen(listener, 16) != 0) return 1;
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd >= 0) std::thread(serve, fd).detach();
  }
}
