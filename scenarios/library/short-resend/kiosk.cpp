// Sells things. POST /sales {id, amount} sends the line "AMOUNT ID" over a connection that it keeps to the ledger, and
// answers 201 with that entry when the ledger says that it is booked.
//
// The defect: send() may take less than it was given. The kiosk sees that, and sends the line again, from its start.
// What had been taken is on its way, though: of "4200 sale-1" the ledger gets "42" and then all of it, and books
// 424200. A full socket buffer or a signal is enough, which is why nobody sees it on a quiet network. With --fixed the
// kiosk goes on behind what was taken.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"
#include "../common/lines.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

class Kiosk {
 public:
  Kiosk(const std::string& ledger, bool fixed) : ledger_(library::Endpoint::parse(ledger)), fixed_(fixed) {}

  Response handle(const Request& request) {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "POST" && request.path == "/sales") return sell(Json::parse(request.body));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  static constexpr std::chrono::milliseconds patience{1000};

  Response sell(const Json& sale) {
    const std::string id = sale.at("id");
    const auto entry = std::to_string(sale.at("amount").get<int>()) + " " + id;
    if (connection_.get() < 0) connection_ = library::dial_blocking(ledger_, patience);
    if (connection_.get() < 0) return {503, {{"id", id}, {"error", "no connection to the ledger"}}};
    const auto answer = send_line(entry + "\n") ? library::read_line(connection_.get()) : std::nullopt;
    if (answer == "booked") return {201, {{"id", id}, {"entry", entry}}};
    connection_ = library::Descriptor();  // whatever is still on its way belongs to no later sale
    return {502, {{"id", id}, {"error", answer ? "refused" : "the ledger does not answer"}}};
  }

  bool send_line(std::string_view bytes) const {
    for (int attempt = 1; attempt <= 100; ++attempt) {
      const auto n = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n == static_cast<ssize_t>(bytes.size())) return true;
      if (n < 0 && errno != EINTR) return false;
      if (fixed_ && n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return false;
  }

  library::Endpoint ledger_;
  bool fixed_;
  library::Descriptor connection_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Kiosk kiosk(arguments.at("ledger"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return kiosk.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "kiosk: %s\n", problem.what());
  return 1;
}
