// A small HTTP service for the tests: it stores lines, asks its peer, dials what it is told to, computes and dies on
// request.
//   web --port N [--bind ADDRESS] [--data FOLDER] [--peer HOST:PORT] [--slow-start MS] [--chain LINKS] [--marker TEXT]
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <thread>

namespace {

int dial(const std::string& host, const std::string& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) return -1000 + error;
  int result = -ECONNREFUSED;
  for (auto* info = found; info != nullptr; info = info->ai_next) {
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, info->ai_addr, info->ai_addrlen) == 0) {
      result = fd;
      break;
    }
    result = -errno;
    close(fd);
  }
  freeaddrinfo(found);
  return result;
}

std::string read_message(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto head = text.find("\r\n\r\n");
    if (head != std::string::npos) {
      std::size_t length = 0;
      const auto at = text.find("Content-Length: ");
      if (at != std::string::npos && at < head) length = std::strtoul(text.c_str() + at + 16, nullptr, 10);
      if (text.size() >= head + 4 + length) return text;
    }
    const auto n = read(fd, buffer, sizeof buffer);
    if (n <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string reply(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

std::string try_dial(const std::string& host, const std::string& port) {
  const int fd = dial(host, port);
  if (fd < 0)
    return std::string("{\"connected\":false,\"error\":\"") + (fd <= -900 ? "no such name" : std::strerror(-fd)) +
           "\"}";
  close(fd);
  return "{\"connected\":true}";
}

std::string ask(const std::string& host, const std::string& port, const std::string& path) {
  const int fd = dial(host, port);
  if (fd < 0) return "";
  write_all(fd, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  auto text = read_message(fd);
  close(fd);
  const auto head = text.find("\r\n\r\n");
  return head == std::string::npos ? "" : text.substr(head + 4);
}

/// Computes until that much processor time has been used.
void work(std::chrono::milliseconds time) {
  const auto began = clock();
  while (clock() - began < time.count() * CLOCKS_PER_SEC / 1000) {
  }
}

std::size_t count_lines(const std::string& path) {
  std::ifstream in(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}

/// A process that makes another every few milliseconds, which goes on in its place.
void forge_chain(int links) {
  if (fork() != 0) return;
  for (; links > 0; --links) {
    ::poll(nullptr, 0, 3);
    if (fork() != 0) break;
  }
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  const auto file = options["--data"] + "/lines";
  if (options.contains("--slow-start"))
    ::poll(nullptr, 0, std::stoi(options["--slow-start"]));  // what is tested is a service that takes its time
  signal(SIGPIPE, SIG_IGN);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(std::stoi(options["--port"])));
  inet_pton(AF_INET, options.contains("--bind") ? options["--bind"].c_str() : "0.0.0.0", &name.sin_addr);
  if (bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || listen(listener, 64) != 0) {
    std::cerr << "cannot listen: " << std::strerror(errno) << std::endl;
    return 3;
  }
  if (options.contains("--chain")) forge_chain(std::stoi(options["--chain"]));
  int recovering = 0;  // answers nothing but 503 until /health has been asked this often
  std::cout << "listening on " << options["--port"] << std::endl;
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const auto text = read_message(fd);
    const auto method = text.substr(0, text.find(' '));
    const auto begin = method.size() + 1;
    const auto target = text.size() > begin ? text.substr(begin, text.find(' ', begin) - begin) : "";
    const auto body = text.find("\r\n\r\n") == std::string::npos ? "" : text.substr(text.find("\r\n\r\n") + 4);
    std::string answer = reply(404, "{}");
    if (target == "/health") answer = reply(200, "{\"ok\":true}");
    if (target == "/lines" && method == "POST") {
      std::ofstream(file, std::ios::app) << body << "\n";
      answer = reply(201, body);
    }
    if (target == "/lines" && method == "GET")
      answer = reply(200, "{\"count\":" + std::to_string(count_lines(file)) + "}");
    if (target == "/uid")
      answer = reply(200, "{\"uid\":" + std::to_string(getuid()) + ",\"pid\":" + std::to_string(getpid()) + "}");
    if (target == "/exit") _exit(9);
    if (target.rfind("/toil/", 0) == 0) answer = reply(202, "{}");
    if (target == "/peer") {
      const auto& peer = options["--peer"];
      const auto colon = peer.find(':');
      const auto said = ask(peer.substr(0, colon), peer.substr(colon + 1), "/lines");
      answer = said.empty() ? reply(502, "{}") : reply(200, said);
    }
    if (target.rfind("/dial/", 0) == 0) {
      const auto rest = target.substr(6);
      answer = reply(200, try_dial(rest.substr(0, rest.find('/')), rest.substr(rest.find('/') + 1)));
    }
    if (recovering > 0) answer = reply(503, "{}");
    if (recovering > 0 && target == "/health") --recovering;
    if (target == "/recover") {
      recovering = 10;
      answer = reply(200, "{}");
    }
    write_all(fd, answer);
    close(fd);
    if (target.rfind("/toil/", 0) == 0) work(std::chrono::milliseconds(std::stoi(target.substr(6))));
  }
}
