// Takes orders. POST /orders {id, item} stores the order in orders.log, answers 201, and then announces it to the
// broker; an announcement that fails is tried again until it succeeds.
//
// The defect: what is still to be announced is known in memory only. A crash after an order is stored and before it is
// announced loses the announcement for good, although the customer was told 201. With --fixed the shop also keeps
// announced.log, and at its start announces every stored order that is not in it (the outbox pattern).
#include <cstdio>
#include <deque>
#include <optional>
#include <set>

#include "../common/arguments.hpp"
#include "../common/http.hpp"
#include "../common/line_log.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

class Shop {
 public:
  Shop(const std::string& data, const std::string& broker, bool fixed)
      : broker_(library::Endpoint::parse(broker)), orders_(data + "/orders.log") {
    for (const auto& line : orders_.lines()) ids_.insert(Json::parse(line).at("id"));
    if (!fixed) return;
    // Never synced: a line that is lost costs one announcement more, which the broker knows already.
    announced_.emplace(data + "/announced.log", library::LineLog::Sync::never);
    const std::set<std::string> done(announced_->lines().begin(), announced_->lines().end());
    for (const auto& id : ids_)
      if (done.count(id) == 0) pending_.push_back(id);
  }

  Response handle(const Request& request) {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "GET" && request.path == "/orders") return {200, Json(ids_)};
    if (request.method == "POST" && request.path == "/orders") return take(Json::parse(request.body));
    return {404, {{"error", "no such thing"}}};
  }

  /// Announces what is pending; returns in how many milliseconds to try again, or -1 when nothing is left.
  int announce_pending() {
    while (!pending_.empty()) {
      if (library::Clock::now() < next_try_) return library::detail::milliseconds_until(next_try_);
      const auto reply = library::exchange(broker_, "POST", "/announce", {{"id", pending_.front()}}, patience);
      if (!reply || reply->status / 100 != 2) {
        next_try_ = library::Clock::now() + pause;
        continue;
      }
      if (announced_) announced_->append(pending_.front());
      pending_.pop_front();
    }
    return -1;
  }

 private:
  static constexpr std::chrono::milliseconds patience{300}, pause{10};

  Response take(const Json& order) {
    const std::string id = order.at("id"), item = order.at("item");
    if (ids_.count(id) != 0) return {200, {{"id", id}, {"state", "stored before"}}};
    if (!orders_.append(Json{{"id", id}, {"item", item}}.dump())) return {503, {{"id", id}, {"error", "cannot store"}}};
    ids_.insert(id);
    pending_.push_back(id);
    return {201, {{"id", id}, {"state", "stored"}}};
  }

  library::Endpoint broker_;
  library::LineLog orders_;
  std::optional<library::LineLog> announced_;
  std::set<std::string> ids_;
  std::deque<std::string> pending_;
  library::Clock::time_point next_try_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Shop shop(arguments.at("data"), arguments.at("broker"), arguments.has("fixed"));
  library::Server(arguments.number("port"))
      .serve([&](const Request& request) { return shop.handle(request); }, [&] { return shop.announce_pending(); });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "shop: %s\n", problem.what());
  return 1;
}
