#include "node/leaf/outbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "protocols/stream.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {

using std::chrono::milliseconds;

Outbox::Outbox(const std::string& endpoint, std::string execution, Limits limits)
    : execution_(std::move(execution)),
      limits_(limits),
      socket_(zmq_, zmq::socket_type::dealer),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      progress_(Clock::now()) {
  socket_.set(zmq::sockopt::routing_id, execution_);
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::reconnect_ivl, 20);
  socket_.connect(endpoint);
  thread_ = std::thread([this] { run(); });
}

Outbox::~Outbox() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void Outbox::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Outbox::push(protocols::Event event) {
  bool needed = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = event.kind == scenarios::events::leaf_end;
    if (held_ >= limits_.held && !ended_) {
      ++dropped_;
      return;
    }
    if (queue_.empty()) oldest_ = Clock::now();
    queue_.push_back(std::move(event));
    ++held_;
    needed = queue_.size() == 1 || queue_.size() == limits_.batch || ended_;
  }
  if (needed) wake();
}

std::uint64_t Outbox::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

bool Outbox::finish(Clock::time_point deadline) {
  {
    std::unique_lock lock(mutex_);
    if (!finished_.wait_until(lock, deadline, [&] { return complete_; })) return false;
  }
  // It is on its way out: the leaf that ends now leaves no finished thread behind.
  if (thread_.joinable()) thread_.join();
  return true;
}

milliseconds Outbox::patience() const {
  auto wait = milliseconds(60'000);
  const auto now = Clock::now();
  if (!under_way_.empty()) wait = std::min(wait, std::chrono::ceil<milliseconds>(progress_ + limits_.resend - now));
  const std::lock_guard lock(mutex_);
  if (!queue_.empty() && under_way_.size() < limits_.window)
    wait = std::min(wait, std::chrono::ceil<milliseconds>(oldest_ + limits_.linger - now));
  return std::max(wait, milliseconds(0));
}

void Outbox::run() {
  for (;;) {
    std::array<zmq::pollitem_t, 2> watched = {zmq::pollitem_t{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                              zmq::pollitem_t{nullptr, wake_.get(), ZMQ_POLLIN, 0}};
    zmq::poll(watched.data(), watched.size(), patience());
    if (watched[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto read = ::read(wake_.get(), &count, sizeof count);
    }
    receive_acks();
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || complete_) return;
    }
    send_new();
    if (!under_way_.empty() && Clock::now() - progress_ >= limits_.resend) {
      for (const auto& batch : under_way_) send(batch);
      progress_ = Clock::now();
    }
  }
}

void Outbox::receive_acks() {
  zmq::message_t message;
  while (socket_.recv(message, zmq::recv_flags::dontwait)) {
    const auto ack = protocols::decode_ack(message.to_string_view());
    if (!ack || ack->execution != execution_) continue;
    const std::lock_guard lock(mutex_);
    while (!under_way_.empty() && under_way_.front().base + under_way_.front().count <= ack->next) {
      held_ -= under_way_.front().count;
      under_way_.pop_front();
      progress_ = Clock::now();
    }
    if (ack->complete && ended_ && queue_.empty() && under_way_.empty()) {
      complete_ = true;
      finished_.notify_all();
    }
  }
}

bool Outbox::take(std::vector<protocols::Event>& events, bool& last) {
  const std::lock_guard lock(mutex_);
  const bool due = ended_ || queue_.size() >= limits_.batch || Clock::now() - oldest_ >= limits_.linger;
  if (queue_.empty() || !due) return false;
  const auto count = std::min(queue_.size(), limits_.batch_max);
  for (std::size_t i = 0; i < count; ++i) {
    events.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  last = ended_ && queue_.empty();
  return true;
}

void Outbox::send_new() {
  while (under_way_.size() < limits_.window) {
    std::vector<protocols::Event> events;
    bool last = false;
    if (!take(events, last)) return;
    if (under_way_.empty()) progress_ = Clock::now();
    Batch batch{next_, events.size(), protocols::encode(protocols::BatchHeader{execution_, next_, events.size(), last}),
                protocols::encode_chunk(events)};
    next_ += batch.count;
    send(batch);
    under_way_.push_back(std::move(batch));
  }
}

void Outbox::send(const Batch& batch) {
  // Not taken because the peer is slow or away: it is sent again when no acknowledgement comes.
  if (socket_.send(zmq::buffer(batch.header), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) [[maybe_unused]]
    const auto sent = socket_.send(zmq::buffer(batch.chunk), zmq::send_flags::none);
}

}  // namespace leafcutter::node
