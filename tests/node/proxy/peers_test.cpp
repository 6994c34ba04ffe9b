// Real programs through the engine, with and without faults: redis, nginx and curl, postgres and pgbench, iperf3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "loopback.hpp"
#include "peer_program.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::HasSubstr;

std::string local(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

Selector only_connections(Ordinals which, Flow flow = Flow::both) {
  Selector selector{flow};
  selector.connections = which;
  return selector;
}

// --- redis ---

struct Redis {
  Redis()
      : port(dead_port()),
        server(scratch, {"redis-server", "--port", std::to_string(port), "--bind", "127.0.0.1", "--save", ""}, port),
        through(std::to_string(port_of(rig.link("redis", local(port))))) {}
  Said cli(const std::string& at, Command command) {
    command.insert(command.begin(), {"redis-cli", "-h", "127.0.0.1", "-p", at});
    return run(scratch, command);
  }
  Said benchmark(int requests) {
    return run(scratch, {"redis-benchmark", "-h", "127.0.0.1", "-p", through, "-n", std::to_string(requests), "-c",
                         "20", "-d", "500", "-t", "ping,set,get,lpush,lrange_100", "--csv"});
  }
  Scratch scratch;
  std::uint16_t port;
  Server server;
  Rig rig;
  std::string through;
};

TEST(Peers, RedisBenchmarkRunsWithAndWithoutFaults) {
  Redis redis;
  const auto plain = redis.benchmark(2000);
  EXPECT_EQ(plain.exit, 0) << plain.text;
  for (const auto* one : {"PING_INLINE", "SET", "GET", "LPUSH", "LRANGE_100"}) EXPECT_THAT(plain.text, HasSubstr(one));
  EXPECT_EQ(redis.rig.stats("redis").strikes, 0u);
  EXPECT_EQ(redis.rig.stats("redis").connect_failed, 0u);
  redis.rig.set("redis", {fault(Latency{FixedTime{1ms}}), fault(Slice{200, 100, 10us}), fault(Bandwidth{50'000'000})});
  const auto slowed = redis.benchmark(200);
  EXPECT_EQ(slowed.exit, 0) << slowed.text;
  EXPECT_THAT(slowed.text, HasSubstr("LRANGE_100"));
  for (const auto& [id, fault] : redis.rig.stats("redis").faults) EXPECT_GT(fault.strikes, 1000u) << id;
}

TEST(Peers, RedisCommandsAreDelayedLostAndReset) {
  Redis redis;
  redis.rig.set("redis", {fault(Latency{FixedTime{150ms}})});
  const auto begin = Clock::now();
  EXPECT_EQ(redis.cli(redis.through, {"SET", "slow", "1"}).text, "OK\n");
  EXPECT_GE(Clock::now() - begin, 300ms) << "there and back";
  redis.rig.set("redis", {fault(LoseReply{})});
  EXPECT_EQ(redis.cli(redis.through, {"INCR", "charged"}).text.find("1\n"), std::string::npos);
  EXPECT_THAT(redis.cli(std::to_string(redis.port), {"GET", "charged"}).text, HasSubstr("1"))
      << "it was done, though nobody heard of it";
  redis.rig.set("redis", {fault(Reset{Side::client, Duration{0}, Reset::When::first_bytes}, Flow::to_upstream)});
  const auto reset = redis.cli(redis.through, {"SET", "reset", "1"});
  EXPECT_NE(reset.text, "OK\n");
  EXPECT_EQ(redis.cli(std::to_string(redis.port), {"EXISTS", "reset"}).text.substr(0, 1), "0");
}

// --- nginx and curl ---

constexpr std::size_t page_bytes = 16 << 20;

struct Web {
  Web() : port(dead_port()) {
    std::string page(page_bytes, '\0');
    std::uint32_t state = 1;
    for (auto& byte : page) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    scratch.write("page", page);
    std::string configuration = "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {}\nhttp {\n";
    for (const auto* one : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      configuration += std::string(one) + "_temp_path " + (scratch / one).string() + ";\n";
    configuration += "access_log off; server { listen " + local(port) + "; root " + scratch.path().string() + "; } }\n";
    scratch.write("nginx.conf", configuration);
    server.emplace(scratch,
                   Command{"/usr/sbin/nginx", "-e", "stderr", "-p", scratch.path().string(), "-c",
                           (scratch / "nginx.conf").string()},
                   port);
    url = "http://" + rig.link("web", local(port)) + "/page";
  }
  /// Several times over one connection.
  int curl(int times) {
    Command command{"curl", "--silent", "--show-error", "--max-time", "40"};
    for (int i = 0; i < times; ++i) command.insert(command.end(), {url, "--output", "got-" + std::to_string(i)});
    const auto said = run(scratch, command);
    what = said.text;
    return said.exit;
  }
  bool identical(int number) const { return scratch.read("got-" + std::to_string(number)) == scratch.read("page"); }
  Scratch scratch;
  std::uint16_t port;
  std::optional<Server> server;
  Rig rig;
  std::string url, what;
};

TEST(Peers, CurlGetsTheSameBytesOverOneConnection) {
  Web web;
  EXPECT_EQ(web.curl(3), 0) << web.what;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(web.identical(i)) << i;
  EXPECT_EQ(web.rig.stats("web").accepted, 1u) << "kept alive";
  EXPECT_GT(web.rig.stats("web").spliced_bytes, page_bytes);
}

TEST(Peers, CurlGetsTheSameBytesUnderFaultsThatOnlyDelay) {
  Web web;
  const std::vector<std::vector<Fault>> sets{
      {fault(Latency{FixedTime{5ms}})},
      {fault(Jitter{0ms, 5ms}), fault(Bandwidth{100'000'000})},
      {fault(Slice{30'000, 20'000, 20us}, Flow::to_client), fault(Latency{UniformTime{0ms, 3ms}}, Flow::to_client)}};
  for (const auto& set : sets) {
    web.rig.set("web", set);
    EXPECT_EQ(web.curl(2), 0) << web.what;
    EXPECT_TRUE(web.identical(0) && web.identical(1)) << kind_of(set[0].effect);
    EXPECT_GT(web.rig.stats("web").faults.at(std::string(kind_of(set[0].effect))).strikes, 0u);
  }
}

TEST(Peers, CurlSeesWhatFaultsDoToThePage) {
  Web web;
  Corrupt flip;
  flip.flips = {{1'000'000, 0xff}};
  web.rig.set("web", {fault(flip, Flow::to_client)});
  EXPECT_EQ(web.curl(1), 0) << web.what;
  const auto page = web.scratch.read("page"), got = web.scratch.read("got-0");
  ASSERT_EQ(got.size(), page.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < page.size(); ++i) different += page[i] != got[i];
  EXPECT_EQ(different, 1u);
  web.rig.set("web", {fault(Limit{1'000'000}, Flow::to_client)});
  EXPECT_EQ(web.curl(1), 18) << "partial file: " << web.what;
  web.rig.set("web", {fault(Cut{{}, 1'000'000, Ending::reset}, Flow::to_client)});
  EXPECT_EQ(web.curl(1), 56) << "receiving failed: " << web.what;
  web.rig.set("web", {fault(Refuse{})});
  EXPECT_EQ(web.curl(1), 7) << "connecting failed: " << web.what;
  web.rig.set("web", {fault(LoseReply{})});
  EXPECT_EQ(web.curl(1), 52) << "empty reply: " << web.what;
  web.rig.set("web", {});
  EXPECT_EQ(web.curl(1), 0) << web.what;
  EXPECT_TRUE(web.identical(0));
}

// --- postgres and pgbench ---

const std::string postgres_programs = "/usr/lib/postgresql/15/bin/";

struct Database {
  Database() : port(dead_port()) {
    const auto data = (scratch / "data").string();
    const auto made = run(scratch,
                          {postgres_programs + "initdb", "--pgdata", data, "--username", "app", "--auth", "trust",
                           "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"},
                          User::ordinary);
    EXPECT_EQ(made.exit, 0) << made.text;
    server.emplace(
        scratch,
        Command{postgres_programs + "postgres", "-D", data, "-p", std::to_string(port), "-k", scratch.path().string(),
                "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "shared_buffers=16MB"},
        port, User::ordinary);
    EXPECT_TRUE(eventually([&] { return sql("select 1") == "1\n"; }, 30s)) << scratch.read("served");
    through = std::to_string(port_of(rig.link("db", local(port))));
  }
  Said pgbench(Command options) {
    options.insert(options.begin(), {postgres_programs + "pgbench", "-h", "127.0.0.1", "-p", through, "-U", "app"});
    options.push_back("postgres");
    return run(scratch, options);
  }
  /// Directly, not through the link.
  std::string sql(const std::string& text) {
    return run(scratch, {postgres_programs + "psql", "-h", "127.0.0.1", "-p", std::to_string(port), "-U", "app", "-At",
                         "-c", text, "postgres"})
        .text;
  }
  Scratch scratch;
  std::uint16_t port;
  std::optional<Server> server;
  Rig rig;
  std::string through;
};

TEST(Peers, PgbenchKeepsItsBooksWithAndWithoutFaults) {
  Database db;
  ASSERT_EQ(db.pgbench({"-i", "-q", "-s", "1"}).exit, 0);
  const Command work{"-n", "-c", "4", "-j", "2", "-t", "50"};
  const auto plain = db.pgbench(work);
  EXPECT_EQ(plain.exit, 0) << plain.text;
  EXPECT_THAT(plain.text, HasSubstr("number of transactions actually processed: 200/200"));
  db.rig.set("db", {fault(Jitter{0ms, 2ms}), fault(Slice{20, 10, 10us}), fault(Bandwidth{5'000'000})});
  const auto slowed = db.pgbench(work);
  EXPECT_EQ(slowed.exit, 0) << slowed.text;
  EXPECT_THAT(slowed.text, HasSubstr("number of transactions actually processed: 200/200"));
  EXPECT_GT(db.rig.stats("db").faults.at("jitter").strikes, 1000u);
  EXPECT_EQ(db.sql("select count(*) from pgbench_history"), "400\n");
  // One client's connection is reset in the middle: that client gives up, and no transaction is half done.
  const auto before = db.rig.stats("db").accepted;
  db.rig.set("db", {fault(Cut{{}, 8000, Ending::reset}, only_connections({before + 3, before + 3}, Flow::to_client))});
  const auto cut = db.pgbench(work);
  EXPECT_NE(cut.exit, 0) << cut.text;
  EXPECT_THAT(cut.text, HasSubstr("aborted"));
  EXPECT_EQ(db.rig.stats("db").faults.at("cut").strikes, 1u);
  db.rig.set("db", {});
  EXPECT_EQ(db.pgbench(work).exit, 0);
  EXPECT_EQ(db.sql("select (select sum(abalance) from pgbench_accounts) = sum(delta), (select sum(bbalance) from "
                   "pgbench_branches) = sum(delta), (select sum(tbalance) from pgbench_tellers) = sum(delta) from "
                   "pgbench_history"),
            "t|t|t\n");
}

// --- iperf3 ---

struct Iperf {
  Iperf()
      : port(dead_port()),
        server(scratch, {"iperf3", "--server", "--bind", "127.0.0.1", "--port", std::to_string(port)}, port),
        through(port_of(rig.link("tcp", local(port)))) {
    LinkConfig datagrams;  // beside the TCP link, which carries iperf3's own talk
    datagrams.name = "udp";
    datagrams.transport = Transport::udp;
    datagrams.listen = local(through);
    datagrams.upstream = local(port);
    const auto added = rig.engine->add_link(std::move(datagrams));
    EXPECT_TRUE(added) << added.error().text();
  }
  nlohmann::json measure(Command options) {
    options.insert(options.begin(), {"iperf3", "--json", "--client", "127.0.0.1", "--port", std::to_string(through)});
    Said said;
    nlohmann::json report;
    // It serves one at a time, and may not be done with the one before.
    EXPECT_TRUE(eventually(
        [&] {
          said = run(scratch, options);
          report = nlohmann::json::parse(said.text, nullptr, false);
          return said.exit == 0 && report.is_object() && !report.contains("error");
        },
        20s))
        << said.text;
    return report.value("end", nlohmann::json::object());
  }
  Scratch scratch;
  std::uint16_t port;
  Server server;
  Rig rig;
  std::uint16_t through;
};

TEST(Peers, Iperf3SeesTheBandwidthInEitherDirection) {
  Iperf iperf;
  const auto free = iperf.measure({"--time", "1"});
  // iperf3's server ends when the sender is done, and leaves what is on its way.
  const auto received = free.at("sum_received").at("bytes").get<std::uint64_t>();
  EXPECT_GE(received, 30u << 20) << "more than with the bandwidth below";
  EXPECT_GE(iperf.rig.stats("tcp").bytes_to_upstream, received);
  EXPECT_EQ(iperf.rig.stats("tcp").strikes, 0u);
  iperf.rig.set("tcp", {fault(Bandwidth{20'000'000})});
  for (const bool reverse : {false, true}) {
    Command options{"--time", "2"};
    if (reverse) options.push_back("--reverse");
    const auto bits = iperf.measure(options).at("sum_received").at("bits_per_second").get<double>();
    EXPECT_LT(bits, 1.1 * 160e6) << reverse;
    EXPECT_GT(bits, 0.6 * 160e6) << reverse;
  }
}

TEST(Peers, Iperf3SeesTheLossOfDatagrams) {
  Iperf iperf;
  const Command options{"--udp", "--bitrate", "20M", "--length", "1000", "--time", "1"};
  const auto lost = [&] {
    const auto sum = iperf.measure(options).at("sum");
    EXPECT_GT(sum.at("packets").get<int>(), 500);
    return sum.at("lost_percent").get<double>();
  };
  EXPECT_LT(lost(), 5);
  iperf.rig.set("udp", {fault(Loss{0.3}, Flow::to_upstream)});
  const auto some = lost();
  EXPECT_GT(some, 22);
  EXPECT_LT(some, 38);
  EXPECT_GT(iperf.rig.stats("udp").faults.at("loss").strikes, 100u);
}

}  // namespace
}  // namespace leafcutter::node::proxy
