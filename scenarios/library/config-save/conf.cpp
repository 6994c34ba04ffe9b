// Keeps one configuration. PUT /config saves a JSON document: first into config.tmp, which is then renamed over
// config.json, so that a reader sees the old document or the new one. GET /config reads it back from the disk.
//
// The defect: nobody looks at what write() says. On a full disk the new document is cut short, and then renamed over
// the good one. With --fixed every result is checked, the document is synced before the rename, and a failure keeps the
// old one.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/document.hpp"
#include "../common/http.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

constexpr std::size_t block = 512;  ///< written a block at a time, as stdio does

/// Whether everything reached the file.
bool write_blocks(int fd, std::string_view bytes) {
  bool all = true;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(block, bytes.size()))) {
    const auto size = std::min(block, bytes.size());
    all = ::write(fd, bytes.data(), size) == static_cast<ssize_t>(size) && all;
  }
  return all;
}

class Config {
 public:
  Config(std::string folder, bool fixed) : folder_(std::move(folder)), fixed_(fixed) {}

  Response handle(const Request& request) const {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "GET" && request.path == "/config") return library::read_document(path("config.json"));
    if (request.method == "PUT" && request.path == "/config") return save(Json::parse(request.body).dump(1) + "\n");
    return {404, {{"error", "no such thing"}}};
  }

 private:
  std::string path(const char* name) const { return folder_ + "/" + name; }

  Response save(const std::string& document) const {
    const int fd = ::open(path("config.tmp").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return {507, {{"error", "cannot write"}}};
    const bool written = write_blocks(fd, document);
    const bool synced = !fixed_ || ::fsync(fd) == 0;
    const bool closed = ::close(fd) == 0;
    if (fixed_ && !(written && synced && closed)) return {507, {{"error", "cannot write"}}};
    if (::rename(path("config.tmp").c_str(), path("config.json").c_str()) != 0)
      return {507, {{"error", "cannot replace"}}};
    return {200, {{"saved", true}}};
  }

  std::string folder_;
  bool fixed_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  const Config config(arguments.at("data"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return config.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "conf: %s\n", problem.what());
  return 1;
}
