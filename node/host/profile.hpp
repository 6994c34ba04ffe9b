// What a node may do to its host, as its owner has reviewed and written it down: scenario features, host actions with
// their limits, commands by argument vector. Everything that is not in it is denied. Deciding is a pure function: the
// same profile, request and situation give the same answer, and a denial names the element that is not allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::node::host {

inline constexpr int profile_version = 1;

/// One element of an argument vector: what it may be. It is compared by itself; elements are never joined.
struct Argument {
  enum class Kind { exact, one_of, integer, matches } kind = Kind::exact;
  std::string text;                ///< exact: the element; matches: RE2 that the whole element must match
  std::vector<std::string> words;  ///< one_of
  std::uint64_t from = 0, to = 0;  ///< integer, in plain decimal: no sign, no leading zero

  bool operator==(const Argument&) const = default;
  /// "one of TERM and KILL", "a whole number from 1 to 300", ...
  std::string expected() const;
  bool takes(std::string_view element) const;
};

struct CommandEntry {
  std::string name;
  std::string program;  ///< absolute
  std::string sha256;   ///< of the program's bytes; empty: not pinned
  std::vector<Argument> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  ///< all that it gets
  std::string folder = "/";                                      ///< absolute
  std::chrono::nanoseconds within = std::chrono::seconds(30);    ///< killed after that
  unsigned at_once = 1;

  /// The vector of an entry without choices; nothing for others.
  std::optional<std::vector<std::string>> fixed_vector() const;
};

struct SignalTarget {
  std::string pid_file, process;  ///< `process`: as in /proc/PID/comm
  std::vector<std::string> signals;
  std::string service;  ///< whose recovery brings it back; empty: none
};

/// Limits of pressure.
struct Pressure {
  std::chrono::nanoseconds longest{0};
  std::uint64_t most = 0;     ///< workers, or megabytes
  std::uint64_t reserve = 0;  ///< megabytes that must stay free
  int nice = 0;
  std::vector<std::string> folders = {};  ///< disk
};

struct Shaping {
  std::chrono::nanoseconds longest{0};
  std::vector<std::string> interfaces;
  std::chrono::nanoseconds delay{0};  ///< the most; 0: not allowed
  std::uint64_t loss = 0;             ///< percent, the most
  std::uint64_t slowest = 0;          ///< kbit/s, the least rate; 0: not allowed
};

struct ProbeEntry {
  enum class Kind { http, tcp, dns } kind = Kind::tcp;
  std::string host;
  unsigned port = 0;
  std::string path = "/";  ///< http
  std::string name;        ///< dns: what is asked for
  std::chrono::nanoseconds within = std::chrono::seconds(5);
};

struct ConfigVariant {
  std::string content;  ///< path of the file that holds it
  std::string sha256;
};

struct Configuration {
  std::string file;
  std::map<std::string, ConfigVariant> variants;
  std::string reload;  ///< a command; empty: none
  std::chrono::nanoseconds longest{0};
};

struct ServiceEntry {
  std::string restart, recover, healthy;                       ///< commands with fixed vectors
  std::chrono::nanoseconds within = std::chrono::seconds(30);  ///< until it is healthy
};

struct Profile {
  std::string name, about;
  std::string digest;  ///< SHA-256 of the text
  std::vector<std::string> features, tiers, pools;
  unsigned at_once = 1;              ///< host actions
  std::vector<unsigned> management;  ///< ports that shaping leaves alone
  std::map<std::string, SignalTarget> signal;
  std::optional<Pressure> cpu, memory, disk;
  std::optional<Shaping> network;
  std::map<std::string, ProbeEntry> probes;
  std::map<std::string, Configuration> configurations;
  std::map<std::string, ServiceEntry> services;
  std::vector<CommandEntry> commands;  ///< in the order of the document

  const CommandEntry* command(std::string_view entry_name) const;
};

struct ProfileLoadResult {
  std::optional<Profile> profile;
  std::vector<base::Error> errors;  ///< bad_input, with their places
};

/// Paths in it that are relative are so to the folder of `file`.
ProfileLoadResult load_profile_text(std::string_view text, const std::string& file);
ProfileLoadResult load_profile_file(const std::string& path);

// --- deciding ---

struct Request {
  std::string action;                             ///< one of action_names()
  std::map<std::string, std::string> parameters;  ///< of every action but `command`
  std::vector<std::string> argv;                  ///< of `command`: program and arguments
  std::chrono::nanoseconds duration{0};           ///< for how long; 0: not said
};

/// What is going on while it is asked.
struct Situation {
  struct Running {
    std::string action;
    std::string resource;  ///< "network lo", "command restart-shop", ...
  };
  std::vector<Running> running;
  std::vector<std::string> recovered;  ///< services whose recovery path has worked in this session
};

struct Decision {
  bool allowed = false;
  std::string reason;    ///< of a denial; names the element
  std::string command;   ///< the entry that an allowed argument vector matches
  std::string resource;  ///< what it holds while it runs
};

/// Signals, pressure, shaping, probes, configurations, services, commands; in the order of the documentation.
const std::vector<std::string>& action_names();

Decision decide(const Profile& profile, const Request& request, const Situation& situation = {});

/// Whether a scenario that uses this may be run. `kind`: "feature", "tier" or "pool".
Decision decide_use(const Profile& profile, const std::string& kind, const std::string& word);

/// Ends or stops what gets it, so that somebody must be able to bring it back.
bool is_destructive_signal(std::string_view name);
/// 0: no signal of a profile.
int signal_number(std::string_view name);

}  // namespace leafcutter::node::host
