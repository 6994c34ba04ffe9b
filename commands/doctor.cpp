// leafcutter doctor: what this host can do, what it cannot, and what would change that.
#include <fmt/format.h>

#include "commands/commands.hpp"
#include "commands/output.hpp"
#include "node/host/doctor.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

int examine() {
  std::string text;
  bool all = true;
  for (const auto& capability : node::examine_host()) {
    const bool extra = !capability.only_for.empty();
    all = all && (capability.seen || extra);
    text += fmt::format("{:<4} {:<20} {}\n",
                        capability.seen ? "ok"
                        : extra         ? "no"
                                        : "NO",
                        capability.name, capability.detail);
    if (extra && !capability.seen) text += fmt::format("{:<25} needed for: {}\n", "", capability.only_for);
    if (!capability.remedy.empty()) text += fmt::format("{:<25} would do: {}\n", "", capability.remedy);
  }
  text += all ? "This host can run leaves.\n" : "This host cannot run leaves; see above.\n";
  return print(text) && all ? 0 : scenarios::exit_codes::inconclusive;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("doctor", "find out, by trying, what this host can do");
  command->callback([&context] { context.exit_code = examine(); });
}

}  // namespace leafcutter::commands
