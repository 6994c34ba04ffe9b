// Tells guests which rooms are free. GET /rooms/ROOM asks the room service, over a connection of a pool: one that is
// idle, or a new one while there are fewer than --pool of them, or the first that comes back within half a second.
//
// The defect: a connection that breaks while it is used is closed, of course, but goes on being counted. (One that
// cannot be opened is counted off: that error has its own place in the code.) The pool has one slot less from then on,
// and nobody sees it until the last one is gone: then every guest waits for a connection that cannot come back. With
// --fixed a broken connection is counted off, too.
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "../common/arguments.hpp"
#include "../common/lines.hpp"
#include "../common/workers.hpp"

using library::Descriptor;
using library::Request;
using library::Response;

namespace {

constexpr std::chrono::milliseconds patience{1000};     // with the room service
constexpr std::chrono::milliseconds longest_wait{500};  // for a connection that is in use

class Pool {
 public:
  Pool(library::Endpoint to, int size) : to_(std::move(to)), size_(size) {}

  /// No socket when there is no connection to be had.
  Descriptor take() {
    std::unique_lock lock(mutex_);
    if (!came_back_.wait_for(lock, longest_wait, [this] { return !idle_.empty() || open_ < size_; }))
      return Descriptor();
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
    ++open_;
    lock.unlock();
    auto connection = library::dial_blocking(to_, patience);
    if (connection.get() >= 0 && library::read_line(connection.get())) return connection;  // greeted
    count_off();
    return Descriptor();
  }

  void give_back(Descriptor connection) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
    came_back_.notify_one();
  }

  /// One connection less is open.
  void count_off() {
    const std::lock_guard lock(mutex_);
    --open_;
    came_back_.notify_one();
  }

 private:
  library::Endpoint to_;
  int size_;
  std::mutex mutex_;
  std::condition_variable came_back_;
  std::vector<Descriptor> idle_;
  int open_ = 0;  ///< idle or taken
};

class Reception {
 public:
  Reception(const std::string& rooms, int pool, bool fixed)
      : pool_(library::Endpoint::parse(rooms), pool), fixed_(fixed) {}

  Response handle(const Request& request) {
    static const std::string rooms = "/rooms/";
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method == "GET" && request.path.rfind(rooms, 0) == 0) return look_up(request.path.substr(rooms.size()));
    return {404, {{"error", "no such thing"}}};
  }

 private:
  Response look_up(const std::string& room) {
    auto connection = pool_.take();
    if (connection.get() < 0) return {503, {{"room", room}, {"error", "no connection to the room service"}}};
    const bool asked =
        library::detail::send_all(connection.get(), "FREE " + room + "\n", library::Clock::now() + patience);
    const auto answer = asked ? library::read_line(connection.get()) : std::nullopt;
    if (!answer) {
      if (fixed_) pool_.count_off();
      return {502, {{"room", room}, {"error", "the connection to the room service broke"}}};
    }
    pool_.give_back(std::move(connection));
    return {200, {{"room", room}, {"state", *answer}}};
  }

  Pool pool_;
  bool fixed_;
};

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv, {"fixed"});
  Reception reception(arguments.at("rooms"), arguments.number("pool"), arguments.has("fixed"));
  library::Workers(arguments.number("port"), 4).serve([&](const Request& request) {
    return reception.handle(request);
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "reception: %s\n", problem.what());
  return 1;
}
