#include "node/actors/courier.hpp"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace leafcutter::node;
using namespace std::chrono_literals;
using protocols::Ack;
using tests::Folder;
using tests::LeafEnd;
using tests::some_events;
using tests::wait_until;

namespace {

/// The coordinator's end, driven by the test: what came, and what is answered.
class CoordinatorEnd {
 public:
  explicit CoordinatorEnd(const std::string& endpoint) : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::router_handover, 1);
    socket_.bind(endpoint);
  }
  /// The next batch; nothing after the time-out.
  std::optional<protocols::BatchHeader> receive(std::chrono::milliseconds within = 5s) {
    zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
    if (zmq::poll(&item, 1, within) == 0) return std::nullopt;
    zmq::message_t header, chunk;
    if (!socket_.recv(from_) || !socket_.recv(header) || !socket_.recv(chunk)) return std::nullopt;
    chunk_ = chunk.to_string();
    return *protocols::decode_batch_header(header.to_string_view());
  }
  void answer(const Ack& ack) {
    socket_.send(zmq::buffer(from_.data(), from_.size()), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(protocols::encode(ack)), zmq::send_flags::none);
  }
  std::string sender() const { return from_.to_string(); }
  const std::string& chunk() const { return chunk_; }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::message_t from_;
  std::string chunk_;
};

struct Rig {
  Rig() { options = {folder / "run", folder / "spool", "node-1", "ipc://" + (folder / "events"), 1u << 30}; }
  std::unique_ptr<Courier> start() {
    auto courier = Courier::start(options, [this](const std::string& execution, std::uint64_t events, bool complete) {
      const std::lock_guard lock(mutex);
      stored[execution] = {events, complete};
    });
    EXPECT_TRUE(courier.ok()) << courier.error().message;
    return std::move(*courier);
  }
  Folder folder;
  Courier::Options options;
  std::mutex mutex;
  std::map<std::string, std::pair<std::uint64_t, bool>> stored;
};

}  // namespace

TEST(Courier, CarriesALeafsEventsToTheCoordinator) {
  Rig rig;
  CoordinatorEnd coordinator(rig.options.coordinator);
  const auto courier = rig.start();
  LeafEnd leaf(courier->leaf_endpoint());
  ASSERT_TRUE(leaf.run("x", 5, 5));
  {
    const std::lock_guard lock(rig.mutex);
    EXPECT_EQ(rig.stored["x"], std::pair(std::uint64_t{5}, true));
  }
  const auto header = coordinator.receive();
  ASSERT_TRUE(header);
  EXPECT_EQ(coordinator.sender(), "node-1");
  EXPECT_EQ(*protocols::decode_chunks(coordinator.chunk()), some_events(0, 5));
  EXPECT_EQ(courier->flush(1ms), 1u) << "it is not acknowledged yet";
  coordinator.answer({"x", 5, true});
  EXPECT_EQ(courier->flush(5s), 0u);
}

TEST(Courier, RepeatsWhatNobodyAcknowledged) {
  Rig rig;
  CoordinatorEnd coordinator(rig.options.coordinator);
  const auto courier = rig.start();
  LeafEnd leaf(courier->leaf_endpoint());
  ASSERT_TRUE(leaf.run("x", 1, 1));
  ASSERT_TRUE(coordinator.receive());
  const auto asked = std::chrono::steady_clock::now();
  ASSERT_TRUE(coordinator.receive()) << "the batch again";
  EXPECT_GE(std::chrono::steady_clock::now() - asked, 400ms);
  coordinator.answer({"x", 1, true});
  EXPECT_EQ(courier->flush(5s), 0u);
  EXPECT_FALSE(coordinator.receive(700ms)) << "and not after it was acknowledged";
}

TEST(Courier, WorksWhileThereIsNoCoordinatorAndCatchesUp) {
  Rig rig;
  const auto courier = rig.start();
  LeafEnd leaf(courier->leaf_endpoint());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(leaf.run("x" + std::to_string(i), 10, 3)) << i;
  EXPECT_EQ(courier->flush(1ms), 20u);
  CoordinatorEnd coordinator(rig.options.coordinator);
  std::set<std::string> complete;
  while (complete.size() < 20) {
    const auto header = coordinator.receive();
    ASSERT_TRUE(header) << complete.size() << " of 20 came";
    coordinator.answer({header->execution, header->base + header->count, header->last});
    if (header->last) complete.insert(header->execution);
  }
  EXPECT_EQ(courier->flush(5s), 0u);
}

TEST(Courier, SendsToAnEndpointNamedLater) {
  Rig rig;
  const auto endpoint = std::exchange(rig.options.coordinator, "");
  const auto courier = rig.start();
  LeafEnd leaf(courier->leaf_endpoint());
  ASSERT_TRUE(leaf.run("x", 1, 1));
  CoordinatorEnd coordinator(endpoint);
  courier->connect(endpoint);
  courier->connect(endpoint);
  ASSERT_TRUE(coordinator.receive());
  coordinator.answer({"x", 1, true});
  EXPECT_EQ(courier->flush(5s), 0u);
}

TEST(Courier, ClosingADeadLeafsStreamCountsWhatItHadSent) {
  Rig rig;
  CoordinatorEnd coordinator(rig.options.coordinator);
  const auto courier = rig.start();
  {
    LeafEnd leaf(courier->leaf_endpoint());
    ASSERT_TRUE(leaf.run("x", 7, 7, false));
  }
  EXPECT_EQ(courier->close("x"), 7u);
  EXPECT_EQ(courier->close("unheard of"), 0u);
  ASSERT_EQ(coordinator.receive()->count, 7u);
  const auto end = coordinator.receive();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->last);
  EXPECT_EQ(end->count, 0u);
}

TEST(Courier, ADiscardedExecutionIsNotSent) {
  Rig rig;
  const auto endpoint = std::exchange(rig.options.coordinator, "");
  const auto courier = rig.start();
  LeafEnd leaf(courier->leaf_endpoint());
  ASSERT_TRUE(leaf.run("x", 3, 3));
  ASSERT_TRUE(leaf.run("y", 3, 3));
  courier->discard("x");
  CoordinatorEnd coordinator(endpoint);
  courier->connect(endpoint);
  EXPECT_EQ(coordinator.receive()->execution, "y");
  coordinator.answer({"y", 3, true});
  EXPECT_EQ(courier->flush(5s), 0u);
}

TEST(Courier, WhatItCannotReadChangesNothing) {
  Rig rig;
  CoordinatorEnd coordinator(rig.options.coordinator);
  const auto courier = rig.start();
  zmq::context_t context;
  zmq::socket_t stranger(context, zmq::socket_type::dealer);
  stranger.set(zmq::sockopt::linger, 1000);
  stranger.connect(courier->leaf_endpoint());
  stranger.send(zmq::str_buffer("hello"), zmq::send_flags::none);
  stranger.send(zmq::str_buffer("a"), zmq::send_flags::sndmore);
  stranger.send(zmq::str_buffer("b"), zmq::send_flags::none);
  for (int i = 0; i < 9; ++i) stranger.send(zmq::str_buffer("many"), zmq::send_flags::sndmore);
  stranger.send(zmq::str_buffer("parts"), zmq::send_flags::none);
  LeafEnd leaf(courier->leaf_endpoint());
  EXPECT_TRUE(leaf.run("x", 2, 1));
  EXPECT_EQ(coordinator.receive()->execution, "x");
}

TEST(Courier, TakesNothingMoreWhenItsSpoolIsFull) {
  Rig rig;
  rig.options.spool_bytes = 1;
  const auto endpoint = std::exchange(rig.options.coordinator, "");
  const auto courier = rig.start();
  LeafEnd leaf(courier->leaf_endpoint());
  leaf.send({"x", 0, 1, true}, protocols::encode_chunk(some_events(0, 1)));
  ASSERT_TRUE(leaf.ack().complete);
  leaf.send({"y", 0, 1, true}, protocols::encode_chunk(some_events(0, 1)));
  EXPECT_EQ(leaf.ack(300ms).execution, "");
  CoordinatorEnd coordinator(endpoint);
  courier->connect(endpoint);
  ASSERT_TRUE(coordinator.receive());
  coordinator.answer({"x", 1, true});
  EXPECT_EQ(leaf.ack().execution, "y") << "there is room again";
}

TEST(Courier, TwoDoNotShareASpool) {
  Rig rig;
  const auto courier = rig.start();
  auto second = rig.options;
  second.run_folder = rig.folder / "run2";
  const auto refused = Courier::start(second, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::conflict);
}

TEST(Courier, ASocketPathThatIsTooLongIsNamed) {
  Rig rig;
  rig.options.run_folder = rig.folder / std::string(120, 'x');
  const auto refused = Courier::start(rig.options, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::bad_input);
}
