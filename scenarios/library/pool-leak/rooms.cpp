// Knows which rooms are free. It greets who connects with a line; a line "FREE ROOM" is answered with "free ROOM",
// anything else with "not a question".
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/lines.hpp"

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  library::LineServer(arguments.number("port"), "welcome").serve([](const std::string& line) -> std::string {
    static const std::string question = "FREE ";
    return line.rfind(question, 0) == 0 ? "free " + line.substr(question.size()) : "not a question";
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "rooms: %s\n", problem.what());
  return 1;
}
