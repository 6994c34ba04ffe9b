#include "coordinator/actors/intake.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "actors/system.hpp"
#include "base/unique_fd.hpp"
#include "coordinator/actors/trace_store.hpp"

namespace leafcutter::coordinator {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;

/// A chunk is bounded by its sender; anything larger on the socket is not one.
constexpr std::int64_t message_at_most = 32 << 20;
/// Messages queued for us in each connection; the rest waits at its node, and in its leaves.
constexpr int high_water = 64;

class ZmqIntake final : public Intake {
 public:
  ZmqIntake(OnFinished on_finished, IntakeOptions options)
      : on_finished_(std::move(on_finished)),
        store_({options.memory_bytes, options.execution_bytes, std::move(options.spill_folder)}),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  ~ZmqIntake() override {
    stop_ = true;
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }

  Status open(const std::string& endpoint) {
    if (!wake_) return base::system_error("eventfd", errno);
    try {
      socket_ = zmq::socket_t(context_, zmq::socket_type::router);
      // Without it a ROUTER drops what it cannot deliver without a word.
      socket_.set(zmq::sockopt::router_mandatory, 1);
      // A node that was restarted takes its name over from its own dead connection.
      socket_.set(zmq::sockopt::router_handover, 1);
      socket_.set(zmq::sockopt::maxmsgsize, message_at_most);
      socket_.set(zmq::sockopt::rcvhwm, high_water);
      socket_.set(zmq::sockopt::sndhwm, high_water);
      // The last acknowledgement should still leave; its loss costs one repetition.
      socket_.set(zmq::sockopt::linger, 100);
      socket_.bind(endpoint);
      endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    } catch (const zmq::error_t& error) {
      return Error{ErrorCode::io, "cannot take events in at " + endpoint + ": " + error.what()};
    }
    thread_ = std::thread([this] { run(); });
    return base::ok();
  }

  const std::string& bound_endpoint() const override { return endpoint_; }

  void expect(const std::string& execution) override {
    const std::lock_guard lock(mutex_);
    store_.expect(execution);
  }

  void forget(const std::string& execution) override {
    const std::lock_guard lock(mutex_);
    store_.forget(execution);
  }

 private:
  void run() {
    while (!stop_) {
      zmq::pollitem_t items[2] = {{socket_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_.get(), ZMQ_POLLIN, 0}};
      try {
        zmq::poll(items, 2, std::chrono::milliseconds(-1));
        while (!stop_ && receive()) {
        }
      } catch (const zmq::error_t& error) {
        if (error.num() != EINTR) return;
      }
    }
  }

  /// One message, if there is one.
  bool receive() {
    std::vector<zmq::message_t> parts;
    do {
      zmq::message_t part;
      if (!socket_.recv(part, parts.empty() ? zmq::recv_flags::dontwait : zmq::recv_flags::none)) return false;
      // More parts than any message of ours has are read to the end of the message and not kept.
      if (parts.size() < 4)
        parts.push_back(std::move(part));
      else
        parts.back() = std::move(part);
    } while (parts.back().more());
    if (parts.size() == 3) take(parts);
    return true;
  }

  void take(const std::vector<zmq::message_t>& parts) {
    const auto header = protocols::decode_batch_header(parts[1].to_string_view());
    if (!header) return;
    FinishedTrace finished;
    protocols::Ack ack;
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      const auto taken = store_.store(*header, parts[2].to_string_view());
      if (!taken) return;  // not acknowledged, so it comes again
      ack = taken->ack;
      over = taken->finished;
      if (over) {
        auto trace = store_.take(header->execution);
        finished.execution = header->execution;
        // A trace that cannot be read back is one without events: judged as the runner's failure.
        if (trace) {
          finished.events = trace->events;
          finished.complete = trace->complete;
          finished.chunks = std::move(trace->chunks);
        }
      }
    }
    // Handed on first: once the node hears that the execution is complete it forgets it.
    if (over) on_finished_(std::move(finished));
    acknowledge(parts[0], ack);
  }

  void acknowledge(const zmq::message_t& node, const protocols::Ack& ack) {
    try {
      const auto id = zmq::buffer(node.data(), node.size());
      if (!socket_.send(id, zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return;
      (void)socket_.send(zmq::buffer(protocols::encode(ack)), zmq::send_flags::dontwait);
    } catch (const zmq::error_t&) {
      // EHOSTUNREACH: the node is gone, or it sends again and is answered then.
    }
  }

  OnFinished on_finished_;
  std::mutex mutex_;
  TraceStore store_;
  base::UniqueFd wake_;
  std::string endpoint_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Anybody who reaches the socket could send events; there are no keys yet.
Status require_local(const std::string& endpoint) {
  constexpr std::string_view tcp = "tcp://";
  if (endpoint.starts_with("ipc://") || endpoint.starts_with("inproc://")) return base::ok();
  if (!endpoint.starts_with(tcp)) {
    return Error{ErrorCode::bad_input, "`" + endpoint +
                                           "` is not an endpoint; one looks like tcp://127.0.0.1:4731 or " +
                                           "ipc:///run/leafcutter/events"};
  }
  auto address = endpoint.substr(tcp.size());
  if (address.ends_with(":*")) address.replace(address.size() - 1, 1, "0");
  const auto parsed = actors::parse_host_port(address);
  if (!parsed) return parsed.error();
  return actors::require_loopback(*parsed);
}

}  // namespace

Intake::~Intake() = default;

Expected<std::unique_ptr<Intake>> Intake::start(const std::string& endpoint, OnFinished on_finished,
                                                IntakeOptions options) {
  const auto local = require_local(endpoint);
  if (!local) return local.error();
  if (options.spill_folder.empty()) {
    std::error_code failed;
    options.spill_folder = std::filesystem::temp_directory_path(failed).string();
    if (failed) return Error{ErrorCode::io, "no temporary folder: " + failed.message()};
  }
  auto intake = std::make_unique<ZmqIntake>(std::move(on_finished), std::move(options));
  const auto opened = intake->open(endpoint);
  if (!opened) return opened.error();
  return std::unique_ptr<Intake>(std::move(intake));
}

}  // namespace leafcutter::coordinator
