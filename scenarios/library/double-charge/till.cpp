// Sells things. POST /buy {order, amount} has the bank charge the customer: one try, and one more when no answer came.
//
// The defect: no answer does not mean no charge. When the bank wrote its ledger and the answer was lost on the way, the
// second try charges the customer again. With --fixed both tries carry the same Idempotency-Key.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

constexpr std::chrono::milliseconds patience{400};

Response buy(const library::Endpoint& bank, const Json& wish, bool fixed) {
  const std::string order = wish.at("order");
  std::map<std::string, std::string> headers;
  if (fixed) headers["Idempotency-Key"] = order;
  const Json charge{{"order", order}, {"amount", wish.at("amount")}};
  auto reply = library::exchange(bank, "POST", "/charge", charge, patience, headers);
  if (!reply) reply = library::exchange(bank, "POST", "/charge", charge, patience, headers);
  if (!reply) return {504, {{"order", order}, {"error", "the bank does not answer"}}};
  if (reply->status / 100 != 2) return {502, {{"order", order}, {"error", "the bank refuses"}}};
  return {201, {{"order", order}, {"state", "paid"}, {"charge", reply->json.at("charge")}}};
}

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  const auto bank = library::Endpoint::parse(arguments.at("bank"));
  const bool fixed = arguments.has("fixed");
  library::Server(arguments.number("port")).serve([&](const Request& request) -> Response {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "POST" && request.path == "/buy") return buy(bank, Json::parse(request.body), fixed);
    return {404, {{"error", "no such thing"}}};
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "till: %s\n", problem.what());
  return 1;
}
