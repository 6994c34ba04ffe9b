#include "node/proxy/resolver.hpp"

#include <optional>

namespace leafcutter::node::proxy {
namespace {

constexpr auto answers_are_kept = std::chrono::seconds(1);
constexpr std::size_t most_questions = 16'384;
constexpr std::size_t most_known = 1024;

std::string cache_key(const HostPort& host) { return host.host + ":" + std::to_string(host.port); }

}  // namespace

Resolver::~Resolver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

const Resolver::Known* Resolver::known(const std::string& key) {
  const auto found = known_.find(key);
  if (found == known_.end() || found->second.until < std::chrono::steady_clock::now()) return nullptr;
  return &found->second;
}

void Resolver::resolve(const HostPort& host, Answer answer) {
  std::optional<Addresses> addresses;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* found = known(cache_key(host))) {
      addresses = found->addresses;
    } else if (questions_.size() >= most_questions) {
      addresses =
          base::Error{base::ErrorCode::unavailable, "cannot resolve \"" + host.host + "\": too many wait for it"};
    } else {
      questions_.push_back({host, std::move(answer)});
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    }
  }
  if (addresses)
    answer(*addresses);
  else
    changed_.notify_one();
}

void Resolver::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ending_ || !questions_.empty(); });
    if (ending_) return;
    const auto question = std::move(questions_.front());
    questions_.pop_front();
    const auto key = cache_key(question.host);
    if (const auto* found = known(key)) {
      const auto addresses = found->addresses;
      lock.unlock();
      question.answer(addresses);
      continue;
    }
    lock.unlock();
    const auto addresses = resolve_host(question.host);
    lock.lock();
    if (known_.size() >= most_known) known_.clear();
    known_.insert_or_assign(key, Known{addresses, std::chrono::steady_clock::now() + answers_are_kept});
    lock.unlock();
    question.answer(addresses);
  }
}

}  // namespace leafcutter::node::proxy
