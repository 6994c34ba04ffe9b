// Takes orders. POST /orders {id} sends "BUY ID" over a connection that it keeps to the market, and answers 201 when
// the market says that the order is filled.
//
// The defect: any error of recv() is taken for a lost connection, which is replaced by a new one, and the order is sent
// again. EINTR is no such thing: a signal came while the answer was waited for (a timer, a child that ended, a window
// that was resized), and nothing has happened to the connection, nor to the order. Twisted translated EINTR into
// CONNECTION_LOST once. With --fixed the desk goes on reading.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"
#include "../common/lines.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

class Desk {
 public:
  Desk(const std::string& market, bool fixed) : market_(library::Endpoint::parse(market)), fixed_(fixed) {}

  Response handle(const Request& request) {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "POST" && request.path == "/orders") return buy(Json::parse(request.body).at("id"));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  static constexpr std::chrono::milliseconds patience{1000};

  Response buy(const std::string& id) {
    for (int attempt = 1; attempt <= 3; ++attempt) {
      if (connection_.get() < 0) connection_ = library::dial_blocking(market_, patience);
      if (connection_.get() < 0) return {503, {{"id", id}, {"error", "no connection to the market"}}};
      const auto answer = ask("BUY " + id + "\n");
      if (answer) return {201, {{"id", id}, {"market", *answer}}};
      connection_ = library::Descriptor();  // lost
    }
    return {502, {{"id", id}, {"error", "the connection to the market is lost again and again"}}};
  }

  std::optional<std::string> ask(const std::string& line) const {
    if (!library::detail::send_all(connection_.get(), line, library::Clock::now() + patience)) return std::nullopt;
    std::string answer;
    char buffer[256];
    while (answer.empty() || answer.back() != '\n') {
      const auto n = ::recv(connection_.get(), buffer, sizeof buffer, 0);
      if (n < 0 && errno == EINTR && fixed_) continue;
      if (n <= 0) return std::nullopt;
      answer.append(buffer, static_cast<std::size_t>(n));
    }
    answer.pop_back();
    return answer;
  }

  library::Endpoint market_;
  bool fixed_;
  library::Descriptor connection_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Desk desk(arguments.at("market"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return desk.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "desk: %s\n", problem.what());
  return 1;
}
