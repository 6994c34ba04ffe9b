// Says what there is: GET /count.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  library::Server(arguments.number("port")).serve([](const library::Request& request) -> library::Response {
    if (request.path == "/health") return {200, {{"ok", true}}};
    if (request.path == "/count") return {200, {{"count", 12}}};
    return {404, {{"error", "no such thing"}}};
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "stock: %s\n", problem.what());
  return 1;
}
