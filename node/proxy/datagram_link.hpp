// A UDP link, on the one worker that has it: sessions, each a client address with an upstream socket of its own.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/proxy/datagram_chain.hpp"
#include "node/proxy/resolver.hpp"
#include "node/proxy/worker.hpp"

namespace leafcutter::node::proxy {

class DatagramSession;

class DatagramLink final : public LinkWorker {
 public:
  DatagramLink(Worker& worker, std::shared_ptr<Link> shared);
  ~DatagramLink() override;

  void apply(ArmedSetPtr set, bool listening) override;
  void end_all() override;

  Worker& worker() { return worker_; }
  Link& shared() { return *shared_; }
  const ArmedSetPtr& set() const { return set_; }
  EventRecord record(EventKind kind) const;

 private:
  friend class DatagramSession;
  struct Listener final : Source {
    DatagramLink* owner = nullptr;
    int fd = -1;
    void ready(std::uint32_t) override { owner->receive(*this); }
  };

  void receive(Listener& listener);
  void drain(const Listener& listener);
  DatagramSession* session_for(const SocketAddress& peer, int listener);
  void used(DatagramSession& session);
  void ended(DatagramSession& session);
  void discard(std::uint64_t session, Direction direction, std::size_t bytes, std::string detail);

  Worker& worker_;
  std::shared_ptr<Link> shared_;
  ArmedSetPtr set_;
  bool listening_ = false;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<std::string, std::shared_ptr<DatagramSession>> sessions_;  ///< by the client's address
  std::list<DatagramSession*> by_use_;                                          ///< the one idle longest in front
};

}  // namespace leafcutter::node::proxy
