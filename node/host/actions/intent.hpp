// What is about to be done to the host, written down and on disk before it is done: enough for anybody who finds it
// later to undo it, in whatever state it was left.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node::host {

using Json = nlohmann::json;

/// Nanoseconds since boot, also while the machine sleeps; and which boot.
std::int64_t boot_time();
const std::string& boot_id();

struct Intent {
  std::string id;
  std::string owner, session, profile;  ///< `profile`: its digest
  std::string action, resource;
  std::string boot;           ///< times are of this one
  std::int64_t deadline = 0;  ///< boot_time() at which it is undone by whoever sees it
  Json recipe;  ///< "kind" and what that needs to apply, check, undo and see it gone; the state before included

  bool overdue() const { return boot != boot_id() || boot_time() >= deadline; }
};

Json to_json(const Intent& intent);
base::Expected<Intent> intent_from(const std::string& text);

/// A folder that the node and its keeper share. Everything in it is for its owner alone.
class State {
 public:
  /// Makes it when it is not there. Errors: io; bad_input (it is somebody else's, or others can write to it).
  static base::Expected<State> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Held while it is decided what may begin, and while a keeper decides that nothing is left. Errors: timeout.
  base::Expected<base::UniqueFd> lock(std::chrono::milliseconds patience = std::chrono::seconds(10)) const;

  /// On disk when this returns; the descriptor holds it: only its holder removes it.
  base::Expected<base::UniqueFd> write(const Intent& intent) const;
  /// Nothing when somebody else holds it; an error when it has gone.
  base::Expected<std::optional<base::UniqueFd>> hold(const std::string& id) const;
  bool exists(const std::string& id) const;
  base::Status forget(const std::string& id) const;
  std::string intent_path(const std::string& id) const;

  struct Listing {
    std::vector<Intent> intents;          ///< by id
    std::vector<std::string> unreadable;  ///< paths, and why
  };
  Listing list() const;

  /// Services whose recovery worked in that session, under that profile.
  std::vector<std::string> recovered(const std::string& session, const std::string& profile) const;
  base::Status note_recovered(const std::string& session, const std::string& profile, const std::string& service) const;

 private:
  std::string folder_;
};

std::string new_id();

/// Synced, and its folder too.
base::Status write_durably(const std::string& path, std::string_view bytes);

}  // namespace leafcutter::node::host
