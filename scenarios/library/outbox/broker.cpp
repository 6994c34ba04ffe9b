// Keeps announcements. POST /announce {id, ...} stores one and answers 201, or 200 when it has that id already, so that
// a caller whose answer was lost may ask again. GET /announced lists the ids.
#include <cstdio>
#include <set>

#include "../common/arguments.hpp"
#include "../common/http.hpp"
#include "../common/line_log.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

class Broker {
 public:
  explicit Broker(const std::string& data) : log_(data + "/announced.log") {
    known_.insert(log_.lines().begin(), log_.lines().end());
  }

  Response handle(const Request& request) {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "GET" && request.path == "/announced") return {200, Json(known_)};
    if (request.method == "POST" && request.path == "/announce") return announce(Json::parse(request.body).at("id"));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  Response announce(const std::string& id) {
    if (known_.count(id) != 0) return {200, {{"id", id}, {"state", "announced before"}}};
    if (!log_.append(id)) return {503, {{"error", "cannot store"}}};
    known_.insert(id);
    return {201, {{"id", id}, {"state", "announced"}}};
  }

  library::LineLog log_;
  std::set<std::string> known_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  Broker broker(arguments.at("data"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return broker.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "broker: %s\n", problem.what());
  return 1;
}
