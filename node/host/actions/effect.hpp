// How each kind of recipe is applied, checked, undone and seen gone. Undoing works from any state that a crash can
// leave, any number of times, and touches nothing that is not this intent's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/host/actions/intent.hpp"
#include "node/host/actions/processes.hpp"

namespace leafcutter::node::host {

struct EffectContext {
  const State& state;
  std::string program;  ///< ours: workers are started from it as `program host-worker STATE ID`
};

struct Effect {
  /// Errors: it may have been done in part.
  base::Status (*apply)(const Intent&, const EffectContext&);
  /// In force, as far as can be seen.
  base::Status (*check)(const Intent&, const EffectContext&);
  base::Status (*undo)(const Intent&, const EffectContext&);
  /// Nothing of it is left; else the error says what.
  base::Status (*gone)(const Intent&, const EffectContext&);
};

/// By "kind" of the recipe; null for one that is not known.
const Effect* effect_of(const Intent& intent);

// One file each:
extern const Effect worker_effect;         ///< cpu, memory: processes of ours
extern const Effect command_effect;        ///< a command under a worker of ours, undone by ending all of its session
extern const Effect fill_effect;           ///< a file that takes room
extern const Effect shape_effect;          ///< queueing disciplines
extern const Effect configuration_effect;  ///< a file's content
extern const Effect stop_effect;           ///< a stopped process
extern const Effect service_effect;        ///< a service that must be well afterwards

/// What `shape_effect` needs from this host; the message says what is missing. `netem`: delay or loss is wanted.
base::Status can_shape(bool netem, bool rate, bool management);
/// The root queue of an interface, as traffic control says it: kind, handle ("0:" is the kernel's own choice).
struct RootQueue {
  std::string kind, handle;
};
base::Expected<RootQueue> root_queue(const std::string& interface);
std::string network_namespace();

/// A file's digest, or empty when there is none.
base::Expected<std::string> digest_of_file(const std::string& path);

/// Until `done` says so, or the error it gave last.
base::Status wait_for(std::chrono::nanoseconds patience, const std::function<base::Status()>& done);

/// The session that a command's worker has begun, if it got that far.
std::optional<HostProcess> session_of(const State& state, const std::string& id);

}  // namespace leafcutter::node::host
