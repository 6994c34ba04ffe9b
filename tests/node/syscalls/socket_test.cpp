// Socket families: the peer names the site; files and unix sockets are not struck.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

class Listening {
 public:
  Listening() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd_.get(), 8) != 0) return;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  const std::string& port() const { return port_; }
  std::map<std::string, std::string> peers() const { return {{"127.0.0.1:" + port_, "broker:http"}}; }
  /// What the first connection brought, to its end; "<none>" when there was none.
  std::string received() const {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) <= 0) return "<none>";
    const base::UniqueFd connection(::accept(fd_.get(), nullptr, nullptr));
    std::string out;
    char buffer[256];
    for (ssize_t n = 0; (n = ::recv(connection.get(), buffer, sizeof buffer, 0)) > 0;)
      out.append(buffer, static_cast<std::size_t>(n));
    return out;
  }

 private:
  base::UniqueFd fd_;
  std::string port_;
};

Setting towards(const Listening& server, std::vector<std::string> families, std::vector<scenarios::Fault> faults = {}) {
  return {
      .families = std::move(families), .data_folder = "/nowhere", .faults = std::move(faults), .peers = server.peers()};
}

class Sending : public testing::TestWithParam<const char*> {};

TEST_P(Sending, IsASiteOfThePeer) {
  const Listening server;
  const auto outcome =
      run({program("sockets"), GetParam(), server.port(), "hello"}, towards(server, {"connect", "send", "write"}));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_EQ(outcome.count("connect", "broker:http"), 1u);
  EXPECT_EQ(outcome.count("send", "broker:http"), 1u);
  EXPECT_EQ(outcome.sites(), 2u);
  EXPECT_EQ(server.received(), "hello");
}

TEST_P(Sending, FailsWithTheError) {
  const Listening server;
  const auto outcome =
      run({program("sockets"), GetParam(), server.port(), "hello"},
          towards(server, {"send"}, {fault("errno", "send", "broker:http", 1, {{"error", "ECONNRESET"}})}));
  EXPECT_THAT(outcome.output, testing::EndsWith(std::string(GetParam()) + " -1 104\n"));
  EXPECT_EQ(outcome.fired()["evidence"]["path"], "127.0.0.1:" + server.port());
  EXPECT_EQ(server.received(), "");
}

TEST_P(Sending, ReachesThePeerBeforeTheCrash) {
  const Listening server;
  const auto outcome = run({program("sockets"), GetParam(), server.port(), "hello"},
                           towards(server, {"send"}, {fault("crash-after", "send", "broker:http")}));
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.output;
  EXPECT_EQ(outcome.fired()["evidence"]["result"], 5);
  EXPECT_EQ(server.received(), "hello");
}

INSTANTIATE_TEST_SUITE_P(By, Sending, testing::Values("send", "sendmsg", "write", "writev"));

TEST(Connecting, IsRefusedByAnError) {
  const Listening server;
  const auto outcome =
      run({program("sockets"), "send", server.port(), "hello"},
          towards(server, {"connect"}, {fault("errno", "connect", "broker:http", 1, {{"error", "ECONNREFUSED"}})}));
  EXPECT_EQ(outcome.output, "connect -1 111\n");
  EXPECT_EQ(server.received(), "<none>");
}

TEST(Connecting, IsDoneBeforeTheCrash) {
  const Listening server;
  const auto outcome = run({program("sockets"), "connect", server.port()},
                           towards(server, {"connect"}, {fault("crash-after", "connect", "broker:http")}));
  EXPECT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_EQ(outcome.fired()["evidence"]["result"], 0);
  EXPECT_EQ(server.received(), "");
}

TEST(Connecting, ToAnUnknownPeerIsASiteOfTheAddress) {
  const Listening server;
  const auto outcome = run({program("sockets"), "send", server.port(), "hello"},
                           {.families = {"connect", "send"}, .data_folder = "/nowhere"});
  EXPECT_EQ(outcome.count("connect", "127.0.0.1:" + server.port()), 1u);
  EXPECT_EQ(outcome.count("send", "socket"), 1u);
}

/// Every program tries some unix sockets (nscd's, a logger's); a rule without an object means those of the data folder.
TEST(Connecting, ToAUnixSocketOutsideOfTheDataFolderIsNotMeant) {
  const ScratchFolder data, elsewhere;
  static constexpr auto script =
      "import socket, sys\n"
      "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
      "except OSError as e: print(e.errno)\n";
  const auto dialled = [&](const std::string& path) {
    return run({"python3", "-c", script, path}, {.families = {"connect"},
                                                 .data_folder = data.path(),
                                                 .faults = {rule("errno", "connect", {{"error", "ENETUNREACH"}})},
                                                 .path_globs = {"*"}})
        .output;
  };
  EXPECT_EQ(dialled(data / "socket"), "101\n");
  EXPECT_EQ(dialled(elsewhere / "socket"), "2\n") << "there is none";
}

/// A port that is free now: taken and given back.
std::string free_port() { return Listening().port(); }

TEST(Serving, IsASiteOfTheListenerAndOfTheSocket) {
  const auto port = free_port();
  const auto outcome =
      run({program("sockets"), "serve", port, "hello"}, {.families = {"accept", "receive"}, .data_folder = "/nowhere"});
  EXPECT_EQ(outcome.output, "accept 0 0\nrecv 5 0\n");
  EXPECT_EQ(outcome.count("accept", "listener:" + port), 1u);
  EXPECT_EQ(outcome.count("receive", "socket"), 1u) << "the client's port is drawn by the kernel and names nothing";
  EXPECT_EQ(outcome.sites(), 2u);
}

TEST(Serving, FailsToAcceptAndToReceive) {
  const auto port = free_port();
  const auto refused = run({program("sockets"), "serve", port, "hello"},
                           {.families = {"accept"},
                            .data_folder = "/nowhere",
                            .faults = {fault("errno", "accept", "listener:" + port, 1, {{"error", "EMFILE"}})}});
  EXPECT_EQ(refused.output, "accept -1 24\n");
  const auto reset = run({program("sockets"), "serve", free_port(), "hello"},
                         {.families = {"receive"},
                          .data_folder = "/nowhere",
                          .faults = {fault("errno", "receive", "socket", 1, {{"error", "ECONNRESET"}})}});
  EXPECT_EQ(reset.output, "accept 0 0\nrecv -1 104\n");
}

TEST(Families, OfSocketsLeaveFilesAndUnixSocketsAlone) {
  const ScratchFolder folder;
  const auto file =
      run({program("steps"), "write," + (folder / "a") + ",x"}, {.families = {"send"}, .data_folder = folder.path()});
  EXPECT_TRUE(file.exited_well());
  EXPECT_EQ(file.sites(), 0u);
  const auto local =
      run({program("sockets"), "unix", "0", "hello"}, {.families = {"send", "write"}, .data_folder = folder.path()});
  EXPECT_EQ(local.output, "unix 5 0\n");
  EXPECT_EQ(local.sites(), 0u);
}

TEST(Families, OfFilesLeaveSocketsAlone) {
  const Listening server;
  const auto outcome = run({program("sockets"), "write", server.port(), "hello"}, towards(server, {"write"}));
  EXPECT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.sites(), 0u);
  EXPECT_EQ(server.received(), "hello");
}

}  // namespace
}  // namespace leafcutter::node::tests
