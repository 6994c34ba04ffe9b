// What a leaf can reach and see, and what it cannot.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/unique_fd.hpp"
#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

class Dial : public ::testing::TestWithParam<std::string> {};

TEST_P(Dial, ReachesTheOtherServiceThroughTheLink) {
  Nest nest;
  nest.give(shop_and_broker(GetParam() + ":8081") + R"(
links: [ workload -> shop, shop -> broker ]
workload:
  - get: shop/peer
    expect: { status: 200, json: { count: 0 } }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["expected"], true);
  EXPECT_EQ(ran.of("request", "shop -> broker").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Names, Dial, ::testing::Values("broker", "localhost", "127.0.0.1", "10.77.0.1"));

TEST(Isolation, NothingButTheDeclaredLinksIsReachable) {
  // A listener on the host that a leaf must not reach.
  const base::UniqueFd host(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(host.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(host.get(), 4), 0);
  ASSERT_EQ(::getsockname(host.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  Nest nest;
  nest.give(shop_and_broker("broker:8081") + R"(
links: [ workload -> shop ]
workload:
  - { get: shop/dial/127.0.0.1/8080, expect: { json: { connected: true } } }
  - { get: shop/dial/127.0.0.1/)" +
            std::to_string(ntohs(name.sin_port)) +
            R"(, expect: { json: { connected: false, error: { matches: "refused|unreachable" } } } }
  - { get: shop/dial/broker/8081, expect: { json: { connected: false, error: { matches: "refused|unreachable" } } } }
  - { get: shop/dial/10.77.0.200/8080, expect: { json: { connected: false, error: { matches: "refused|unreachable" } } } }
  - { get: shop/dial/192.0.2.1/80, expect: { json: { connected: false, error: Connection refused } } }
  - { get: shop/dial/10.0.0.1/80, expect: { json: { connected: false, error: Connection refused } } }
  - { get: shop/dial/example.org/80, expect: { json: { connected: false, error: no such name } } }
  - run: [/bin/sh, -c, "bash -c 'exec 3<>/dev/tcp/broker/8081'"]
    expect: { exit: 1 }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 8u);
  for (const auto& step : ran.of("step")) EXPECT_EQ(step.attrs["expected"], true) << step.attrs;
}

TEST(Isolation, TheHostIsReadOnlyAndTheRestIsOwn) {
  Nest nest;
  const auto outside = nest.folder();
  nest.give(std::string(one_service) + R"(
workload:
  - { name: user, run: [/bin/sh, -c, "test $(id -u) = 1000 && getent passwd 1000 && getent group 1000"], expect: { exit: 0 } }
  - { name: etc, run: [/bin/sh, -c, "echo x > /etc/leafcutter-test"], expect: { exit: { at-least: 1 } } }
  - { name: root, run: [/bin/sh, -c, "echo x > /leafcutter-test"], expect: { exit: { at-least: 1 } } }
  - { name: scenario, run: [/bin/sh, -c, "test -x bin/web && ! touch bin/new"], expect: { exit: 0 } }
  - { name: scratch, run: [/bin/sh, -c, "set -e; for f in /tmp /run /var/tmp /dev/shm /leaf/shop; do echo x > $f/file; done"], expect: { exit: 0 } }
  - { name: tmp, run: [/bin/sh, -c, "ls /tmp"], expect: { exit: 0 } }
  - { name: names, run: [/bin/sh, -c, "grep -q '^10.77.0.1 shop$' /etc/hosts && ! test -s /etc/resolv.conf && test $(uname -n) = leaf"], expect: { exit: 0 } }
  - { name: processes, run: [/bin/sh, -c, "ls /proc | grep -c '^[0-9]'"], expect: { exit: 0, json: { at-most: 6 } } }
  - { get: shop/uid, expect: { json: { uid: 1000, pid: 2 } } }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 9u);
  for (const auto& step : ran.of("step")) EXPECT_EQ(step.attrs["expected"], true) << step.attrs;
  for (const auto* path : {"/etc/leafcutter-test", "/leafcutter-test", "/tmp/file", "/dev/shm/file", "/leaf"})
    EXPECT_NE(::access(path, F_OK), 0) << path;
  EXPECT_NE(::access((outside + "/bin/new").c_str(), F_OK), 0);
}

TEST(Isolation, AServiceMayUseAPortBelow1024) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: low
services:
  shop:
    run: [bin/web, --port, "80", --bind, 10.77.0.1, --data, "${data}"]
    ports: { http: { port: 80, protocol: http } }
    ready: { http: /health }
workload:
  - { get: shop/health, expect: { status: 200 } }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["expected"], true);
}

TEST(Isolation, PeersMayShareAPort) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: peers
services:
  one:
    run: [bin/web, --port, "8080", --data, "${data}", --peer, "two:8080"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
  two:
    run: [bin/web, --port, "8080", --data, "${data}", --peer, "one:8080"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
links: [ workload -> one, workload -> two, one -> two, two -> one ]
workload:
  - { post: two/lines, json: { id: a } }
  - { get: one/peer, expect: { json: { count: 1 } } }
  - { get: two/peer, expect: { json: { count: 0 } } }
  - { get: one/dial/10.77.0.200/8080, expect: { json: { connected: false } } }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 4u);
  for (auto& step : ran.of("step")) EXPECT_EQ(step.attrs["expected"], true);
  EXPECT_EQ(ran.of("request", "one -> two").size(), 1u);
  EXPECT_EQ(ran.of("request", "two -> one").size(), 1u);
}

TEST(Isolation, AHostWithoutUserNamespacesIsSaidToBeOne) {
  const Folder folder;
  const auto program = folder.path() + "/nursery";
  std::ofstream(program) << "#!/bin/sh\nexec unshare --user --map-root-user /bin/sh -c 'echo 0 > "
                            "/proc/sys/user/max_user_namespaces && exec "
                         << NURSERY_PROGRAM << " leaf-nursery'\n";
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  Nest nest(program);
  nest.give(std::string(one_service) + "workload: [ { get: shop/health } ]\n");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  EXPECT_TRUE(ran.exit.clean);
  ASSERT_EQ(ran.events.size(), 2u);
  EXPECT_EQ(ran.events.front().attrs.value("isolation", true), false);
  EXPECT_EQ(ran.end()["cause"], "infra");
  EXPECT_EQ(ran.end()["reason"], "unavailable");
  EXPECT_NE(ran.end().value("detail", "").find("namespaces"), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::node::testing
