// Shows prices. GET /items/ITEM is answered by one of two workers, which asks the price service. GET /workers says how
// many of them are waiting for it.
//
// The defect: a worker waits for the price as long as it takes. A peer that is gone without a word, or a network that
// lost the connection's state, never answers, and never says so either: the worker is gone for good, and with as many
// such connections as there are workers the portal answers nobody any more. This is what most HTTP clients do unless
// they are told otherwise. With --fixed a worker waits half a second.
#include <atomic>
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/workers.hpp"

using library::Request;
using library::Response;

namespace {

constexpr int workers = 2;
constexpr std::chrono::milliseconds half_a_second{500};
constexpr std::chrono::milliseconds for_ever = std::chrono::hours(24 * 365);

class Portal {
 public:
  Portal(const std::string& prices, std::chrono::milliseconds patience)
      : prices_(library::Endpoint::parse(prices)), patience_(patience) {}

  Response handle(const Request& request) {
    static const std::string items = "/items/";
    if (request.method != "GET") return {404, {{"error", "no such thing"}}};
    if (request.path == "/health") return {200, {{"ok", true}}};
    if (request.path == "/workers") return {200, {{"workers", workers}, {"waiting", waiting_.load()}}};
    if (request.path.rfind(items, 0) == 0) return show(request.path.substr(items.size()));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  Response show(const std::string& item) {
    ++waiting_;
    const auto reply = library::exchange(prices_, "GET", "/prices/" + item, nullptr, patience_);
    --waiting_;
    if (!reply) return {504, {{"item", item}, {"error", "the price service does not answer"}}};
    if (reply->status != 200) return {502, {{"item", item}, {"error", "the price service refuses"}}};
    return {200, {{"item", item}, {"price", reply->json.at("price")}}};
  }

  library::Endpoint prices_;
  std::chrono::milliseconds patience_;
  std::atomic<int> waiting_{0};
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Portal portal(arguments.at("prices"), arguments.has("fixed") ? half_a_second : for_ever);
  library::Workers(arguments.number("port"), workers).serve([&](const Request& request) {
    return portal.handle(request);
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "portal: %s\n", problem.what());
  return 1;
}
