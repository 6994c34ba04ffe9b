// Keeps settings. PUT /settings writes a JSON document, a section at a time; GET /settings reads it back from the disk.
//
// The defect: the good file is opened for writing, which empties it, and then each fprintf() is asked whether it
// failed, and fclose() is not. stdio keeps what it was given until the file is closed; a full disk is told to fclose()
// alone, and the answer is 200. jansson's json_dump_file() did just that until 2017. With --fixed the document goes
// into a new file, whose every step is checked; the good one is replaced at the end, and where a step fails, it stays:
// 507.
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

/// Whether stdio took all of it.
bool print_sections(std::FILE* file, const Json& document) {
  const char* before = "{";
  bool taken = true;
  for (const auto& [name, section] : document.items()) {
    taken = std::fprintf(file, "%s\n%s: %s", before, Json(name).dump().c_str(), section.dump().c_str()) > 0 && taken;
    before = ",";
  }
  return std::fprintf(file, "\n}\n") > 0 && taken;
}

class Settings {
 public:
  Settings(const std::string& folder, bool fixed)
      : path_(folder + "/settings.json"), fresh_path_(folder + "/settings.tmp"), fixed_(fixed) {}

  Response handle(const Request& request) const {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "GET" && request.path == "/settings") return library::read_document(path_);
    if (request.method == "PUT" && request.path == "/settings") {
      const auto document = Json::parse(request.body);
      if (!(fixed_ ? replace(document) : overwrite(document))) return {507, {{"error", "cannot save"}}};
      return {200, {{"saved", true}}};
    }
    return {404, {{"error", "no such thing"}}};
  }

 private:
  bool overwrite(const Json& document) const {
    std::FILE* file = std::fopen(path_.c_str(), "we");
    if (file == nullptr) return false;
    const bool taken = print_sections(file, document);
    std::fclose(file);
    return taken;
  }

  bool replace(const Json& document) const {
    std::FILE* file = std::fopen(fresh_path_.c_str(), "we");
    if (file == nullptr) return false;
    const bool taken = print_sections(file, document);
    const bool synced = std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
    const bool closed = std::fclose(file) == 0;
    return taken && synced && closed && std::rename(fresh_path_.c_str(), path_.c_str()) == 0;
  }

  std::string path_, fresh_path_;
  bool fixed_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  const Settings settings(arguments.at("data"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return settings.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "settings: %s\n", problem.what());
  return 1;
}
