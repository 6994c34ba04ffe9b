// Keeps a ledger. A line "AMOUNT ID" is an entry: it goes to the standard output, which is the ledger, and "booked"
// goes back to who sent it; to anything else it says "not an entry". Entries end where their line ends: that is all it
// knows.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/lines.hpp"

namespace {

bool is_entry(const std::string& line) {
  const auto space = line.find(' ');
  return space != std::string::npos && space > 0 && space + 1 < line.size() &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(space),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  library::LineServer(arguments.number("port")).serve([](const std::string& line) -> std::string {
    if (!is_entry(line)) return "not an entry";
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    return "booked";
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "ledger: %s\n", problem.what());
  return 1;
}
