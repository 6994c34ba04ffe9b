#include "node/actors/courier.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <zmq.hpp>

#include "base/unique_fd.hpp"
#include "node/actors/forward_queue.hpp"

namespace leafcutter::node {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;
using Clock = std::chrono::steady_clock;

/// A chunk is bounded by its sender; anything larger on the socket is not one.
constexpr std::int64_t message_at_most = 32 << 20;
/// Messages queued in a socket; the rest waits at its sender.
constexpr int high_water = 64;
/// How many messages are taken from one socket before the other is looked at.
constexpr int turn = 64;
/// More than all leaves' sockets can hold; bounds the emptying of them.
constexpr int queued_at_most = 1 << 20;
constexpr auto patience = std::chrono::milliseconds(100);
/// How long another thread waits for the courier's own; it never takes that long unless it is stuck.
constexpr auto answer_within = std::chrono::seconds(10);

Error zmq_error(const std::string& what, const zmq::error_t& error) {
  return Error{ErrorCode::io, what + ": " + error.what()};
}

Expected<base::UniqueFd> lock_folder(const std::string& folder) {
  const auto path = folder + "/lock";
  base::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return base::system_error("open " + path, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::conflict,
                 "another node uses the spool folder " + folder + "; give this one a folder of its own"};
  }
  return lock;
}

class ZmqCourier final : public Courier {
 public:
  ZmqCourier(Options options, OnStored on_stored)
      : options_(std::move(options)),
        on_stored_(std::move(on_stored)),
        queue_({options_.spool_folder}),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        endpoint_("ipc://" + options_.run_folder + "/courier") {}

  ~ZmqCourier() override {
    post([this] { stop_ = true; });
    if (thread_.joinable()) thread_.join();
  }

  Status open() {
    if (!wake_) return base::system_error("eventfd", errno);
    auto locked = lock_folder(options_.spool_folder);
    if (!locked) return locked.error();
    lock_ = std::move(*locked);
    const auto recovered = queue_.recover();
    if (!recovered) return recovered;
    executions_ = queue_.executions();
    try {
      leaves_ = zmq::socket_t(context_, zmq::socket_type::router);
      leaves_.set(zmq::sockopt::router_mandatory, 1);
      leaves_.set(zmq::sockopt::router_handover, 1);
      leaves_.set(zmq::sockopt::maxmsgsize, message_at_most);
      leaves_.set(zmq::sockopt::rcvhwm, high_water);
      leaves_.set(zmq::sockopt::linger, 0);
      leaves_.bind(endpoint_);
    } catch (const zmq::error_t& error) {
      return zmq_error("bind " + endpoint_, error);
    }
    if (!options_.coordinator.empty()) {
      const auto dialled = dial(options_.coordinator);
      if (!dialled) return dialled;
    }
    thread_ = std::thread([this] { run(); });
    return base::ok();
  }

  const std::string& leaf_endpoint() const override { return endpoint_; }

  void connect(const std::string& coordinator) override {
    post([this, coordinator] {
      // A courier without a way out keeps spooling; the next welcome names an endpoint again.
      if (coordinator != dialled_) (void)dial(coordinator);
    });
  }

  std::uint64_t close(const std::string& execution) override {
    auto promise = std::make_shared<std::promise<std::uint64_t>>();
    auto answer = promise->get_future();
    post([this, execution, promise] {
      // What a dead leaf had sent lies in the socket still, room or not.
      for (int taken = 0; taken < queued_at_most && take_from_leaf(); ++taken) {
      }
      const auto events = queue_.close(execution);
      count();
      promise->set_value(events);
    });
    if (answer.wait_for(answer_within) != std::future_status::ready) return 0;
    return answer.get();
  }

  void discard(const std::string& execution) override {
    post([this, execution] { queue_.discard(execution); });
  }

  std::size_t flush(std::chrono::milliseconds within) override {
    // What was posted before this call counts.
    auto promise = std::make_shared<std::promise<void>>();
    auto answer = promise->get_future();
    const auto until = Clock::now() + within;
    post([promise] { promise->set_value(); });
    answer.wait_until(until);
    std::unique_lock lock(mutex_);
    done_.wait_until(lock, until, [this] { return executions_ == 0; });
    return executions_;
  }

 private:
  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  Status dial(const std::string& coordinator) {
    try {
      zmq::socket_t socket(context_, zmq::socket_type::dealer);
      socket.set(zmq::sockopt::routing_id, options_.node);
      socket.set(zmq::sockopt::sndhwm, high_water);
      socket.set(zmq::sockopt::maxmsgsize, message_at_most);
      // Nothing is queued for a peer that is not there: it would only be sent again, once for every silence.
      socket.set(zmq::sockopt::immediate, 1);
      socket.set(zmq::sockopt::reconnect_ivl, 50);
      socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
      socket.set(zmq::sockopt::linger, 0);
      socket.connect(coordinator);
      coordinator_ = std::move(socket);
      dialled_ = coordinator;
    } catch (const zmq::error_t& error) {
      return zmq_error("connect to " + coordinator, error);
    }
    return base::ok();
  }

  void run() {
    while (!stop_) {
      queue_.tick(Clock::now());
      const bool blocked = send();
      const bool soon = queue_.in_flight();
      const bool open = room();
      std::vector<zmq::pollitem_t> items{{nullptr, wake_.get(), ZMQ_POLLIN, 0}};
      if (open) items.push_back({leaves_.handle(), 0, ZMQ_POLLIN, 0});
      if (coordinator_) {
        const auto events = static_cast<short>(blocked ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN);
        items.push_back({coordinator_.handle(), 0, events, 0});
      }
      try {
        zmq::poll(items, soon ? patience : std::chrono::milliseconds(-1));
      } catch (const zmq::error_t& error) {
        if (error.num() != EINTR) return;
      }
      do_tasks();
      for (int taken = 0; taken < turn && room() && take_from_leaf(); ++taken) {
      }
      take_acks();
      count();
    }
  }

  /// Lets flush() see how many executions are left.
  void count() {
    const std::lock_guard lock(mutex_);
    executions_ = queue_.executions();
    if (executions_ == 0) done_.notify_all();
  }

  void do_tasks() {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    std::deque<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

  /// True when the socket took no more and something is left to send.
  bool send() {
    if (!coordinator_) return false;
    while (const auto batch = queue_.next()) {
      try {
        if (!coordinator_.send(zmq::buffer(batch->header), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
          return true;
        // The first part was taken, so the rest is: a message goes in whole.
        (void)coordinator_.send(zmq::buffer(batch->chunk), zmq::send_flags::none);
      } catch (const zmq::error_t&) {
        return true;
      }
      queue_.sent(Clock::now());
    }
    return false;
  }

  bool room() const { return queue_.spooled_bytes() < options_.spool_bytes; }

  /// One message of a leaf, if there is one.
  bool take_from_leaf() {
    std::vector<zmq::message_t> parts;
    if (!receive(leaves_, parts)) return false;
    if (parts.size() != 3) return true;  // not ours; there is nobody to tell
    const auto header = protocols::decode_batch_header(parts[1].to_string_view());
    if (!header) return true;
    const auto stored = queue_.store(*header, parts[2].to_string());
    if (!stored) return true;  // not acknowledged, so it comes again
    // First our own node: a leaf ends as soon as it hears, and its slot may ask then.
    if (stored->news && on_stored_) on_stored_(header->execution, stored->ack.next, stored->ack.complete);
    acknowledge(parts[0], stored->ack);
    return true;
  }

  void acknowledge(const zmq::message_t& leaf, const protocols::Ack& ack) {
    try {
      const auto id = zmq::buffer(leaf.data(), leaf.size());
      if (!leaves_.send(id, zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return;
      (void)leaves_.send(zmq::buffer(protocols::encode(ack)), zmq::send_flags::dontwait);
    } catch (const zmq::error_t&) {
      // EHOSTUNREACH: the leaf is gone, or it sends again and is answered then.
    }
  }

  void take_acks() {
    if (!coordinator_) return;
    for (int taken = 0; taken < turn; ++taken) {
      std::vector<zmq::message_t> parts;
      if (!receive(coordinator_, parts)) return;
      if (parts.size() != 1) continue;
      const auto ack = protocols::decode_ack(parts[0].to_string_view());
      if (ack) queue_.acknowledged(*ack, Clock::now());
    }
  }

  /// One whole message, if there is one.
  static bool receive(zmq::socket_t& socket, std::vector<zmq::message_t>& parts) {
    try {
      do {
        zmq::message_t part;
        const auto flags = parts.empty() ? zmq::recv_flags::dontwait : zmq::recv_flags::none;
        if (!socket.recv(part, flags)) return false;
        // More parts than any message of ours has are read to the end of the message and not kept.
        if (parts.size() < 4)
          parts.push_back(std::move(part));
        else
          parts.back() = std::move(part);
      } while (parts.back().more());
    } catch (const zmq::error_t&) {
      return false;
    }
    return true;
  }

  Options options_;
  OnStored on_stored_;
  ForwardQueue queue_;
  base::UniqueFd wake_, lock_;
  std::string endpoint_, dialled_;
  zmq::context_t context_;
  zmq::socket_t leaves_, coordinator_;
  bool stop_ = false;  // the courier's thread only

  std::mutex mutex_;
  std::condition_variable done_;
  std::deque<std::function<void()>> tasks_;
  std::size_t executions_ = 0;
  std::thread thread_;
};

Status check(const Courier::Options& options) {
  if (options.node.empty() || options.node.size() > 255 || options.node.front() == '\0') {
    return Error{ErrorCode::bad_input, "a node's name has 1 to 255 bytes; `" + options.node + "` does not"};
  }
  const auto path = options.run_folder + "/courier";
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error{ErrorCode::bad_input, "the run folder's path is too long for a socket in it: " + path +
                                           "; a folder below " + "/tmp or /run would do"};
  }
  for (const auto& folder : {options.run_folder, options.spool_folder}) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return Error{ErrorCode::io, "create " + folder + ": " + failed.message()};
  }
  return base::ok();
}

}  // namespace

Courier::~Courier() = default;

Expected<std::unique_ptr<Courier>> Courier::start(Options options, OnStored on_stored) {
  const auto checked = check(options);
  if (!checked) return checked.error();
  auto courier = std::make_unique<ZmqCourier>(std::move(options), std::move(on_stored));
  const auto opened = courier->open();
  if (!opened) return opened.error();
  return std::unique_ptr<Courier>(std::move(courier));
}

}  // namespace leafcutter::node
