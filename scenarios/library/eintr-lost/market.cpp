// Fills orders. A line "BUY ID" is filled at once: "filled ID" goes to its standard output, which is its book, and back
// to who asked. It takes no notice of an ID that it has seen before: not to ask twice is the caller's business.
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/lines.hpp"

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  library::LineServer(arguments.number("port")).serve([](const std::string& line) -> std::string {
    static const std::string buy = "BUY ";
    if (line.rfind(buy, 0) != 0) return "not an order";
    const auto filled = "filled " + line.substr(buy.size());
    std::printf("%s\n", filled.c_str());
    std::fflush(stdout);
    return filled;
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "market: %s\n", problem.what());
  return 1;
}
