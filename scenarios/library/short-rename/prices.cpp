// Keeps a price list. PUT /prices saves a JSON document: first into prices.tmp, which is synced and then renamed over
// prices.json. GET /prices reads it back from the disk.
//
// The defect: write() is asked whether it failed, not how much it took. It may take less than it was given, without
// any error, and half a list replaces the good one. With --fixed the rest is written, too.
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

bool write_once(int fd, std::string_view bytes) { return ::write(fd, bytes.data(), bytes.size()) >= 0; }

class Prices {
 public:
  Prices(const std::string& folder, bool fixed)
      : path_(folder + "/prices.json"), fresh_path_(folder + "/prices.tmp"), fixed_(fixed) {}

  Response handle(const Request& request) const {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "GET" && request.path == "/prices") return library::read_document(path_);
    if (request.method == "PUT" && request.path == "/prices") return save(Json::parse(request.body).dump(1) + "\n");
    return {404, {{"error", "no such thing"}}};
  }

 private:
  Response save(const std::string& document) const {
    const library::Descriptor file(::open(fresh_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return {507, {{"error", "cannot write"}}};
    const bool written = fixed_ ? library::write_all(file.get(), document) : write_once(file.get(), document);
    if (!written || ::fsync(file.get()) != 0) return {507, {{"error", "cannot write"}}};
    if (::rename(fresh_path_.c_str(), path_.c_str()) != 0) return {507, {{"error", "cannot replace"}}};
    return {200, {{"saved", true}}};
  }

  std::string path_, fresh_path_;
  bool fixed_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  const Prices prices(arguments.at("data"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return prices.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "prices: %s\n", problem.what());
  return 1;
}
