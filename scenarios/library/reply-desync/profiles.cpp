// Knows people. POST /profile {user} answers 200 with that user's profile. A caller may keep its connection.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Json;
using library::Request;
using library::Response;

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  library::Server(arguments.number("port")).serve([](const Request& request) -> Response {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method != "POST" || request.path != "/profile") return {404, {{"error", "no such thing"}}};
    const std::string user = Json::parse(request.body).at("user");
    return {200, {{"user", user}, {"mail", user + "@example.org"}}};
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "profiles: %s\n", problem.what());
  return 1;
}
