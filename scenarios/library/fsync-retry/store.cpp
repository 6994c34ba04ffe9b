// Keeps records. POST /records {id} appends the record to records.log, syncs the file, and answers 201. GET /records/ID
// answers 200 for a record that is held, and 404 for any other.
//
// The defect: when fsync() fails it is tried again, and when it succeeds then, the record is acknowledged. But a kernel
// that could not write a page out marks it clean all the same: the second fsync() finds nothing left to write, and the
// record is in memory only, where the next loss of power ends it. PostgreSQL, WiredTiger and others did just that until
// 2018. With --fixed a file whose sync has failed is never trusted again: all records are written to a new file, which
// is synced and takes its place, and where that fails, too, the answer is 503.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

class Store {
 public:
  Store(const std::string& folder, bool fixed)
      : path_(folder + "/records.log"),
        fixed_(fixed),
        folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        log_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    std::ifstream file(path_, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    text_.resize(text_.rfind('\n') + 1);  // what a crash tore apart goes
    for (std::size_t at = 0, end = 0; at < text_.size(); at = end + 1)
      ids_.insert(text_.substr(at, (end = text_.find('\n', at)) - at));
    // The file is there after a loss of power only when its name is.
    if (::ftruncate(log_.get(), size(text_)) != 0 || ::fsync(folder_.get()) != 0)
      throw std::runtime_error(path_ + ": " + std::strerror(errno));
  }

  Response handle(const Request& request) {
    static const std::string records = "/records";
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "POST" && request.path == records) return add(Json::parse(request.body).at("id"));
    if (request.method == "GET" && request.path.rfind(records + "/", 0) == 0)
      return get(request.path.substr(records.size() + 1));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  static off_t size(const std::string& text) { return static_cast<off_t>(text.size()); }

  Response get(const std::string& id) const {
    if (ids_.count(id) == 0) return {404, {{"error", "no such record"}}};
    return {200, {{"id", id}}};
  }

  Response add(const std::string& id) {
    if (ids_.count(id) != 0) return {200, {{"id", id}, {"state", "stored before"}}};
    const auto text = text_ + id + "\n";
    if (!(fixed_ ? store_safely(id + "\n", text) : store(id + "\n"))) return {503, {{"error", "cannot store"}}};
    text_ = text;
    ids_.insert(id);
    return {201, {{"id", id}, {"state", "stored"}}};
  }

  bool store(const std::string& line) {
    if (library::write_all(log_.get(), line))
      for (int attempt = 1; attempt <= 3; ++attempt)
        if (::fsync(log_.get()) == 0) return true;
    if (::ftruncate(log_.get(), size(text_)) == 0) return false;
    throw std::runtime_error(path_ + ": cannot remove half a line");
  }

  bool store_safely(const std::string& line, const std::string& text) {
    if (!suspect_ && library::write_all(log_.get(), line) && ::fsync(log_.get()) == 0) return true;
    suspect_ = true;  // until all of it is in a file that has been synced without a failure
    const auto fresh_path = path_ + ".new";
    library::Descriptor fresh(::open(fresh_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    if (fresh.get() < 0 || !library::write_all(fresh.get(), text) || ::fsync(fresh.get()) != 0) return false;
    if (::rename(fresh_path.c_str(), path_.c_str()) != 0 || ::fsync(folder_.get()) != 0) return false;
    log_ = std::move(fresh);
    suspect_ = false;
    return true;
  }

  std::string path_;
  bool fixed_;
  library::Descriptor folder_, log_;
  std::string text_;  ///< every record, as in the file
  std::set<std::string> ids_;
  bool suspect_ = false;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Store store(arguments.at("data"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return store.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "store: %s\n", problem.what());
  return 1;
}
