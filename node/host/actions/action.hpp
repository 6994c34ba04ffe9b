// One host action from request to outcome: decided by the profile, written down before it is done, kept by a keeper
// that outlives us, seen in force, undone, and seen gone.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "base/signature.hpp"
#include "node/host/actions/effect.hpp"
#include "node/host/actions/intent.hpp"
#include "node/host/audit_log.hpp"
#include "node/host/profile.hpp"
#include "protocols/audit.hpp"

namespace leafcutter::node::host {

/// Where an action has got to; for tests, which end processes at each.
enum class Step { decided, prepared, kept, applied, checked, undone, gone };
inline constexpr int step_count = 7;

struct ActionOptions {
  std::string program;  ///< ours, see EffectContext
  std::string owner;    ///< who asks
  std::string session;  ///< in which a recovery must have worked; empty: this boot
  int stop = -1;        ///< readable: it is undone at once
  bool detach = false;  ///< return once it is in force; its keeper undoes it
  std::function<void(Step)> at = {};
};

struct ActionResult {
  protocols::Outcome outcome = protocols::Outcome::lost;  ///< none: detached, and in force
  std::string id, resource;
  std::string detail;   ///< for people; nothing is read out of it
  std::string output;   ///< of a command
  nlohmann::json seen;  ///< of a probe
};

/// From one thread at a time. Every request is answered; what goes wrong on the way is in the outcome.
class HostActions {
 public:
  static base::Expected<HostActions> open(const std::string& state_folder, Profile profile, ActionOptions options);

  ActionResult run(const Request& request);
  const State& state() const { return state_; }
  /// What is in force.
  Situation situation() const;

 private:
  HostActions(State state, Profile profile, ActionOptions options, AuditLog log)
      : state_(std::move(state)), profile_(std::move(profile)), options_(std::move(options)), log_(std::move(log)) {}

  ActionResult finish(ActionResult result, const Request& request);
  base::Status note(const ActionResult& result, const Request& request, const char* stage);
  ActionResult keep_until_over(const Intent& intent, ActionResult result);
  ActionResult undo_now(const Intent& intent, ActionResult result);
  ActionResult carry_out(const Request& request, const Intent& intent, ActionResult result);
  void reached(Step step) const {
    if (options_.at) options_.at(step);
  }

  State state_;
  Profile profile_;
  ActionOptions options_;
  AuditLog log_;
};

}  // namespace leafcutter::node::host
