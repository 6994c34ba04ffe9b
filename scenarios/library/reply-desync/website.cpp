// Shows people their own page. POST /page {user} asks the profile service, over one connection that it keeps, and
// answers 200 with that user's profile.
//
// The defect: when a profile does not come in a second, the website stops waiting for it and keeps the connection. The
// profile comes all the same, later, and lies there until the next user asks: that one is shown it, and so on, each
// the one before, for as long as the connection lasts. With --fixed a connection that owes an answer is closed.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

constexpr std::chrono::milliseconds patience{1000};

class Website {
 public:
  Website(const std::string& profiles, bool fixed) : profiles_(library::Endpoint::parse(profiles)), fixed_(fixed) {}

  Response handle(const Request& request) {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "POST" && request.path == "/page") return show(Json::parse(request.body).at("user"));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  Response show(const std::string& user) {
    const auto reply = library::exchange(connection_, profiles_, "POST", "/profile", {{"user", user}}, patience);
    if (!reply && fixed_) connection_.close();
    if (!reply) return {504, {{"user", user}, {"error", "the profile service does not answer"}}};
    if (reply->status != 200) return {502, {{"user", user}, {"error", "the profile service refuses"}}};
    return {200, {{"user", reply->json.at("user")}, {"mail", reply->json.at("mail")}}};
  }

  library::Endpoint profiles_;
  bool fixed_;
  library::KeptConnection connection_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Website website(arguments.at("profiles"), arguments.has("fixed"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return website.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "website: %s\n", problem.what());
  return 1;
}
