// Takes the event stream in: a ROUTER that stores batches in order, acknowledges what is stored, drops duplicates and hands a
// finished execution's whole trace on. One thread owns the socket.
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
  bool complete = false;      ///< the last batch came
  std::string chunks;         ///< concatenated chunks (protocols/event.hpp)
};

class Intake {
 public:
  using OnFinished = std::function<void(FinishedTrace)>;  ///< from the intake's thread

  /// `endpoint`: "tcp://127.0.0.1:*", "ipc://..." ; bound_endpoint() says what was bound.
  static base::Expected<std::unique_ptr<Intake>> start(const std::string& endpoint, OnFinished on_finished);
  virtual ~Intake();
  virtual const std::string& bound_endpoint() const = 0;

  /// Executions that will be taken; batches of any other are acknowledged as complete and dropped (an old attempt's rest).
  virtual void expect(const std::string& execution) = 0;
  virtual void forget(const std::string& execution) = 0;
};

}  // namespace leafcutter::coordinator
