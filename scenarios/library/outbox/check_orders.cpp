// Reads a shop's orders.log without any of the shop's code: every line must be whole, an order, and there once. With
// --shop HOST:PORT it also asks the shop which orders it holds; the two lists must be the same.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "../common/arguments.hpp"
#include "../common/http.hpp"

using library::Json;

namespace {

int complain(const std::string& what) {
  std::printf("%s\n", what.c_str());
  return 1;
}

std::string listed(const std::set<std::string>& ids) {
  std::string text;
  for (const auto& id : ids) text += (text.empty() ? "" : " ") + id;
  return "[" + text + "]";
}

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  if (arguments.rest().size() != 1) throw std::runtime_error("usage: check-orders DATA-FOLDER [--shop HOST:PORT]");
  std::ifstream file(arguments.rest()[0] + "/orders.log", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!bytes.empty() && bytes.back() != '\n') return complain("orders.log ends within a line");

  std::set<std::string> stored;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < bytes.size(); begin = bytes.find('\n', begin) + 1) {
    const auto line = bytes.substr(begin, bytes.find('\n', begin) - begin);
    const auto where = "orders.log line " + std::to_string(++number) + ": ";
    const auto order = Json::parse(line, nullptr, false);
    if (!order.is_object() || !order.contains("id") || !order.contains("item"))
      return complain(where + "not an order: " + line);
    if (!stored.insert(order["id"]).second) return complain(where + "a second time: " + line);
  }
  if (!arguments.has("shop")) return 0;

  const auto reply =
      library::exchange(library::Endpoint::parse(arguments.at("shop")), "GET", "/orders", {}, std::chrono::seconds(5));
  if (!reply || reply->status != 200) return complain("the shop does not say which orders it holds");
  const auto held = reply->json.get<std::set<std::string>>();
  if (held != stored) return complain("stored " + listed(stored) + ", but the shop holds " + listed(held));
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "check-orders: %s\n", problem.what());
  return 2;
}
