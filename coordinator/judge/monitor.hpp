// One property over one trace: fed event by event, asked once at the end. A monitor is made afresh for every leaf.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/judge/ending.hpp"
#include "coordinator/judge/judge.hpp"
#include "protocols/event.hpp"
#include "scenarios/model.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::coordinator {

/// What one property says of one trace.
struct PropertyOutcome {
  struct Open {
    std::string what;          ///< one sentence
    scenarios::Reason reason;  ///< why it is undecided
  };
  std::vector<Violation> violations;  ///< at most `violations_kept`
  std::vector<Open> open;
  bool vacuous = false;  ///< nothing in the trace put the property to the test
};

/// Of one property and leaf; the rest repeats what these say.
inline constexpr std::size_t violations_kept = 16;

class Monitor {
 public:
  static std::unique_ptr<Monitor> make(const scenarios::Property& property);
  virtual ~Monitor();

  void see(const protocols::Event& event);
  PropertyOutcome finish(const Ending& ending);

 protected:
  explicit Monitor(const scenarios::Property& property) : property_(property) {}
  virtual base::Status look(const protocols::Event& event) = 0;
  virtual void conclude(const Ending& ending) = 0;

  void violate(std::string message, const std::string& key, std::vector<EventRef> evidence);
  void leave_open(const std::string& what, scenarios::Reason reason);

  const scenarios::Property& property_;
  PropertyOutcome outcome_;

 private:
  std::optional<std::string> broken_;  ///< the first run-time error of one of its expressions
};

EventRef ref(const protocols::Event& event);

/// "status: 2xx, json.id: exists", for messages.
std::string describe(const std::vector<scenarios::Matcher>& matchers);

}  // namespace leafcutter::coordinator
