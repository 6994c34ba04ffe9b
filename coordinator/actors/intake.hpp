// Takes the event stream in: a ROUTER that stores batches in order, acknowledges what is stored, drops duplicates and
// hands a finished execution's whole trace on. One thread owns the socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace leafcutter::coordinator {

struct FinishedTrace {
  std::string execution;
  std::uint64_t events = 0;
  bool complete =
      false;           ///< the last batch came, with the leaf's own end; false: its node closed it, or it was too large
  std::string chunks;  ///< concatenated chunks (protocols/event.hpp)
};

struct IntakeOptions {
  std::size_t memory_bytes = 64u << 20;      ///< of unfinished traces, altogether; what is beyond goes to disk
  std::size_t execution_bytes = 256u << 20;  ///< of one trace; what is beyond is dropped and the trace is incomplete
  std::string spill_folder;                  ///< for nameless files; empty: the system's temporary folder
};

class Intake {
 public:
  using OnFinished = std::function<void(FinishedTrace)>;  ///< from the intake's thread, before the last acknowledgement

  /// `endpoint`: "tcp://127.0.0.1:*", "ipc://..." ; bound_endpoint() says what was bound. Errors: bad_input (not
  /// loopback), io (cannot bind).
  static base::Expected<std::unique_ptr<Intake>> start(const std::string& endpoint, OnFinished on_finished,
                                                       IntakeOptions options = {});
  virtual ~Intake();
  virtual const std::string& bound_endpoint() const = 0;

  /// Executions that will be taken; batches of any other are acknowledged as complete and dropped (an old attempt's
  /// rest).
  virtual void expect(const std::string& execution) = 0;
  virtual void forget(const std::string& execution) = 0;
};

}  // namespace leafcutter::coordinator
