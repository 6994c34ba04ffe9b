#include "node/proxy/resolver.hpp"

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace leafcutter::node::proxy {
namespace {

constexpr auto answers_are_kept = std::chrono::seconds(1);
constexpr std::size_t most_questions = 16'384;
constexpr std::size_t most_known = 1024;

std::string cache_key(const HostPort& host) { return host.host + ":" + std::to_string(host.port); }

base::Error not_asked(const HostPort& host, const std::string& why) {
  return {base::ErrorCode::unavailable, "cannot resolve \"" + host.host + "\": " + why};
}

}  // namespace

/// What the threads share with the resolver, and keep when it is gone.
struct Resolver::State {
  explicit State(Lookup how) : lookup(std::move(how)) {}

  struct Known {
    Addresses addresses;
    std::chrono::steady_clock::time_point until;
  };

  const Known* known(const std::string& key) const {
    const auto found = known_names.find(key);
    if (found == known_names.end() || found->second.until < std::chrono::steady_clock::now()) return nullptr;
    return &found->second;
  }
  void run();
  void answer_all(std::unique_lock<std::mutex>& lock, const HostPort& host, const Addresses& addresses);

  const Lookup lookup;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<HostPort> names;                          ///< asked for, and not looked up yet; each once
  std::map<std::string, std::vector<Answer>> waiting;  ///< for names that were asked for and have no answer yet
  std::size_t questions = 0;                           ///< in `waiting`
  std::map<std::string, Known> known_names;
  std::size_t threads = 0, idle = 0;
  std::size_t answering = 0;
  bool ending = false;
};

Resolver::Resolver(Lookup lookup) : state_(std::make_shared<State>(std::move(lookup))) {}

Resolver::~Resolver() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->names.clear();
  state_->waiting.clear();
  state_->changed.notify_all();
  state_->changed.wait(lock, [this] { return state_->answering == 0; });
}

void Resolver::resolve(const HostPort& host, Answer answer) {
  auto& state = *state_;
  std::optional<Addresses> addresses;
  {
    const std::lock_guard lock(state.mutex);
    const auto key = cache_key(host);
    if (const auto* found = state.known(key)) {
      addresses = found->addresses;
    } else if (state.questions >= most_questions) {
      addresses = not_asked(host, "too many wait for it");
    } else {
      auto& waiting = state.waiting[key];
      waiting.push_back(std::move(answer));
      ++state.questions;
      if (waiting.size() > 1) return;
      state.names.push_back(host);
      if (state.idle < state.names.size() && state.threads < most_lookups) {
        // Nobody waits for it at the end: a lookup may take as long as name servers are silent.
        try {
          std::thread([shared = state_] { shared->run(); }).detach();
          ++state.threads;
        } catch (const std::system_error& error) {
          if (state.threads == 0) {
            answer = std::move(waiting.back());
            state.waiting.erase(key);
            state.names.pop_back();
            --state.questions;
            addresses = not_asked(host, error.what());
          }
        }
      }
    }
  }
  if (addresses)
    answer(*addresses);
  else
    state.changed.notify_one();
}

void Resolver::State::run() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for the threads of whoever uses the engine
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait(lock, [this] { return ending || !names.empty(); });
    --idle;
    if (ending) return;
    const auto host = std::move(names.front());
    names.pop_front();
    lock.unlock();
    const auto addresses = lookup(host);
    lock.lock();
    if (ending) return;
    answer_all(lock, host, addresses);
  }
}

void Resolver::State::answer_all(std::unique_lock<std::mutex>& lock, const HostPort& host, const Addresses& addresses) {
  const auto key = cache_key(host);
  if (known_names.size() >= most_known) known_names.clear();
  known_names.insert_or_assign(key, Known{addresses, std::chrono::steady_clock::now() + answers_are_kept});
  const auto answers = std::move(waiting[key]);
  waiting.erase(key);
  questions -= answers.size();
  ++answering;
  lock.unlock();
  for (const auto& answer : answers) answer(addresses);
  lock.lock();
  if (--answering == 0) changed.notify_all();
}

}  // namespace leafcutter::node::proxy
