// The part of a TCP link that one worker has: accepts, and knows its connections.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "node/proxy/stream_connection.hpp"
#include "node/proxy/worker.hpp"

namespace leafcutter::node::proxy {

class StreamLink final : public LinkWorker {
 public:
  StreamLink(Worker& worker, std::shared_ptr<Link> shared);
  ~StreamLink() override;

  void apply(ArmedSetPtr set, bool listening) override;
  void end_all() override;

  Worker& worker() { return worker_; }
  Link& shared() { return *shared_; }
  const ArmedSetPtr& set() const { return set_; }
  /// The connection is over and is forgotten.
  void ended(StreamConnection& connection);
  EventRecord record(EventKind kind) const;

 private:
  struct Listener final : Source {
    StreamLink* owner = nullptr;
    int fd = -1;
    void ready(std::uint32_t) override { owner->accept(*this); }
  };

  void accept(Listener& listener);
  void begin(base::UniqueFd client, const SocketAddress& peer);
  void pause_for(int error);
  void resume();
  void watch(bool listening);

  Worker& worker_;
  std::shared_ptr<Link> shared_;
  ArmedSetPtr set_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  bool listening_ = false;  ///< as it is told
  bool watching_ = false;   ///< the listeners are in the epoll
  bool scarce_ = false, full_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unordered_map<std::uint64_t, std::shared_ptr<StreamConnection>> connections_;
};

}  // namespace leafcutter::node::proxy
