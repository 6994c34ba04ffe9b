#include "commands/proxy_dashboard.hpp"

#include <gtest/gtest.h>

namespace leafcutter::commands {
namespace {

using namespace std::chrono_literals;

Dashboard sample_board() {
  Dashboard board;
  board.name = "checkout";
  board.phase = "slow";
  board.seed = 7;
  board.phase_number = 2;
  board.phases = 3;
  board.elapsed = 3723s;
  board.phase_left = 65s;
  DashboardLink shop{"shop", "127.0.0.1:8081", "shop:80", false, 3, 12, 5, 1, 999, 1'500'000, {}};
  shop.faults = {
      {"latency", "to-client", 4, 2, 100ms, true}, {"reset", "", 1, 0, 0ns, false}, {"limit", "", 0, 0, 0ns, false}};
  board.links = {shop, {"dns", "127.0.0.1:53", "ns:53", true, 0, 0, 0, 0, 0, 1234, {}}};
  return board;
}

TEST(ProxyDashboard, ShowsEveryLinkWithWhatIsActiveAndWhatStruck) {
  EXPECT_EQ(dashboard_text(sample_board(), 100, 40, false),
            "leafcutter proxy  checkout  seed 7  1:02:03\n"
            "phase 2 of 3: slow  (1:05 left)\n"
            "\n"
            "shop  tcp://127.0.0.1:8081 -> shop:80\n"
            "    3 open, 12 so far, 5 struck, 1 without upstream   up 999 B/s   down 1.5 MB/s\n"
            "    latency                to-client    struck 4        25.0 ms on average  passed over 2\n"
            "    reset                               struck 1         (earlier)\n"
            "\n"
            "dns  udp://127.0.0.1:53 -> ns:53\n"
            "    0 open, 0 so far, 0 struck   up 0 B/s   down 1.2 kB/s\n"
            "    no faults\n");
}

TEST(ProxyDashboard, FitsTheTerminalAndIsQuietAboutColoursWhenTold) {
  auto board = sample_board();
  board.name = "caf\xC3\xA9 \x1b[2J" + std::string(200, 'x');
  board.phase_left.reset();
  board.dropped_records = 9;
  board.notice = "the edit was refused: run.yaml:1:1: no";
  const auto text = dashboard_text(board, 30, 4, true);
  EXPECT_EQ(text,
            "\x1b[1mleafcutter proxy  caf\xC3\xA9 ?[2Jxxx\x1b[0m\n"
            "phase 2 of 3: slow  (until sto\n"
            "\x1b[31m9 records were dropped\x1b[0m\n"
            "\x1b[31mthe edit was refused: run.yaml\x1b[0m\n");
  EXPECT_EQ(dashboard_text(board, 30, 4, false).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::commands
