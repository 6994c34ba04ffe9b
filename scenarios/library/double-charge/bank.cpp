// Keeps a ledger of charges. POST /charge {order, amount} writes one and answers 201. A caller that sends an
// Idempotency-Key gets its first charge back, with 200, however often it asks.
#include <cstdio>
#include <map>

#include "../common/arguments.hpp"
#include "../common/http.hpp"
#include "../common/line_log.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

class Bank {
 public:
  explicit Bank(const std::string& data) : ledger_(data + "/ledger.log") {
    for (const auto& line : ledger_.lines()) remember(Json::parse(line));
  }

  Response handle(const Request& request) {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "POST" && request.path == "/charge") {
      const auto key = request.headers.find("idempotency-key");
      return charge(Json::parse(request.body), key == request.headers.end() ? "" : key->second);
    }
    return {404, {{"error", "no such thing"}}};
  }

 private:
  Response charge(const Json& wish, const std::string& key) {
    if (const auto known = by_key_.find(key); !key.empty() && known != by_key_.end()) return {200, known->second};
    const Json charge{{"charge", ledger_.lines().size() + 1},
                      {"order", wish.at("order")},
                      {"amount", wish.at("amount")},
                      {"key", key}};
    if (!ledger_.append(charge.dump())) return {503, {{"error", "cannot write the ledger"}}};
    remember(charge);
    return {201, charge};
  }

  void remember(const Json& charge) {
    if (const std::string key = charge.at("key"); !key.empty()) by_key_[key] = charge;
  }

  library::LineLog ledger_;
  std::map<std::string, Json> by_key_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  Bank bank(arguments.at("data"));
  library::Server(arguments.number("port")).serve([&](const Request& request) { return bank.handle(request); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "bank: %s\n", problem.what());
  return 1;
}
