// Knows prices. GET /prices/ITEM answers 200 with one.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Request;
using library::Response;

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  library::Server(arguments.number("port")).serve([](const Request& request) -> Response {
    static const std::string prices = "/prices/";
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method != "GET" || request.path.rfind(prices, 0) != 0) return {404, {{"error", "no such thing"}}};
    return {200, {{"item", request.path.substr(prices.size())}, {"price", 4200}}};
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "prices: %s\n", problem.what());
  return 1;
}
