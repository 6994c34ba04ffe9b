// Offers what the stock has: GET /offer asks it, after looking its name up.
//
// The defect: "there is no such name" is taken for a mistake in the configuration, which no second look will mend, and
// is remembered. With a resolver that was wrong once, the front is out of work until somebody restarts it. With --fixed
// every offer looks again.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Request;
using library::Response;

namespace {

constexpr std::chrono::milliseconds patience{1000};

/// 0, or what getaddrinfo() says; then `endpoint` has the address in the name's place.
int look_up(const library::Endpoint& named, library::Endpoint& endpoint) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(named.host.c_str(), nullptr, &hints, &found);
  if (error != 0) return error;
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr, text, sizeof text);
  ::freeaddrinfo(found);
  endpoint = named;
  endpoint.host = text;
  return 0;
}

Response not_now(const char* why) { return {503, {{"error", why}}}; }

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  const auto stock = library::Endpoint::parse(arguments.at("stock"));
  const bool fixed = arguments.has("fixed");
  bool misconfigured = false;
  library::Server(arguments.number("port")).serve([&](const Request& request) -> Response {
    if (request.path == "/health") return {200, {{"ok", true}}};
    if (request.path != "/offer") return {404, {{"error", "no such thing"}}};
    if (misconfigured) return not_now("the stock's name is wrong: see the configuration");
    library::Endpoint endpoint;
    const int error = look_up(stock, endpoint);
    if ((error == EAI_NONAME || error == EAI_NODATA) && !fixed) misconfigured = true;
    if (error != 0) return not_now(::gai_strerror(error));
    const auto reply = library::exchange(endpoint, "GET", "/count", {}, patience);
    if (!reply || reply->status != 200) return not_now("the stock does not answer");
    return {200, reply->json};
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "front: %s\n", problem.what());
  return 1;
}
