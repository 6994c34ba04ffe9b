// One client of a UDP link: its datagrams go to the upstream from one socket, and whatever comes back on that goes to
// it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "node/proxy/datagram_link.hpp"

namespace leafcutter::node::proxy {

class DatagramSession final : public Pumped,
                              public Timed,
                              private Source,
                              private StrikeSink,
                              public std::enable_shared_from_this<DatagramSession> {
 public:
  DatagramSession(DatagramLink& link, std::string key, const SocketAddress& peer, int listener, std::uint64_t ordinal);
  ~DatagramSession() override;

  void start();
  void from_client(std::string_view bytes);
  void apply(const ArmedSetPtr& set);
  void end(Cause cause, ArmedFaultPtr fault = {});

  void pump() override;
  void due(Time now) override;

  std::string key;
  std::list<DatagramSession*>::iterator place;  ///< in the link's list by use

 private:
  struct Way {
    std::unique_ptr<DatagramChain> chain;
    std::uint64_t bytes = 0;  ///< delivered
    std::size_t charged = 0;
  };

  void ready(std::uint32_t events) override;
  void open_upstream(const Resolver::Addresses& addresses);
  void pass(Direction direction, std::string_view bytes);
  void deliver(Direction direction);
  void send(Direction direction, std::string_view bytes);
  void send_failed(Direction direction, std::size_t bytes, int error);
  void report_failure(Cause cause, std::string detail);
  void renew_chains();
  bool has_room(const Way& way, std::size_t bytes) const;
  bool meets_faults(Direction direction, std::string_view bytes);
  void close_if_done();
  void pass_back(const ArmedFaultPtr& by, Direction direction, std::string bytes);
  void send_back(BackPassage back, Direction direction);
  void send_back_due();
  void account(Way& way);
  void arm_timer();
  Way& way(Direction direction) { return ways_[static_cast<std::size_t>(direction)]; }

  void struck(const ArmedFault& fault, Direction direction, const Strike& strike) override;
  void passed_over(const ArmedFault& fault, Direction direction) override;
  EventRecord record(EventKind kind) const;

  struct Back {
    Time due;
    Direction direction;
    std::string bytes;
    ArmedFaultPtr by;
  };

  DatagramLink& link_;
  Worker& worker_;
  SocketAddress peer_;
  int listener_;
  std::uint64_t ordinal_;
  ArmedSetPtr set_;
  base::UniqueFd upstream_;
  bool resolving_ = false, failing_ = false, over_ = false, was_struck_ = false;
  Way ways_[2];
  std::vector<std::string> waiting_;  ///< for the upstream's address
  std::vector<Back> back_;
  ArmedFaultPtr closing_;  ///< the fault that ends the session, while something of it still waits
  Time last_used_;
};

}  // namespace leafcutter::node::proxy
