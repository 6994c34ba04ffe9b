// Carries events from the leaves of a node to the coordinator: a ROUTER on ipc for the leaves, a spool on disk, a
// DEALER to the coordinator. What a leaf was told is stored is on disk; it is forgotten when the coordinator has
// acknowledged it. One thread owns both sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace leafcutter::node {

class Courier {
 public:
  struct Options {
    std::string run_folder;  ///< of the ipc socket; visible in leaves
    std::string spool_folder;
    std::string node;         ///< routing id towards the coordinator
    std::string coordinator;  ///< ZeroMQ endpoint: "tcp://127.0.0.1:4731" or "ipc://..."; empty: see connect()
    std::uint64_t spool_bytes = 4ull << 30;  ///< beyond it nothing is taken from leaves until something is acknowledged
  };
  /// Events of the execution stored so far, and whether its last batch is among them; called from the courier's thread.
  using OnStored = std::function<void(const std::string& execution, std::uint64_t events, bool complete)>;

  static base::Expected<std::unique_ptr<Courier>> start(Options options, OnStored on_stored);
  virtual ~Courier();

  virtual const std::string& leaf_endpoint() const = 0;

  /// Sends to this endpoint from now on (a coordinator says where it takes events in when it admits the node). Naming
  /// the same one again changes nothing.
  virtual void connect(const std::string& coordinator) = 0;

  /// The execution will not send any more (its leaf died): what is spooled is sent on; `events` were stored.
  virtual std::uint64_t close(const std::string& execution) = 0;

  /// The execution's events are of no use any more (its lease was cancelled).
  virtual void discard(const std::string& execution) = 0;

  /// Waits until everything is acknowledged, or until the deadline; returns how many executions were left.
  virtual std::size_t flush(std::chrono::milliseconds within) = 0;
};

}  // namespace leafcutter::node
