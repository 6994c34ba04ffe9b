// Which calls a rule strikes: everything that can be said about a system call before it runs. A fault of the search
// names one visit of one site and needs no aim; a fault that a user wrote as a rule has one. Rules of links have one,
// too: which connections, and what of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"

namespace leafcutter::scenarios {

using protocols::Value;

/// Classes of what a call acts on: "file", "directory", "socket-tcp", "socket-udp", "socket-unix", "pipe", "tty",
/// "eventfd", "process" (calls that act on nothing: clocks, randomness, sleeps) and "other".
const std::vector<std::string>& object_classes();

/// Whole numbers, both ends included.
struct Range {
  std::optional<std::uint64_t> at_least, at_most;
  bool holds(std::uint64_t value) const { return (!at_least || value >= *at_least) && (!at_most || value <= *at_most); }
  bool operator==(const Range&) const = default;
};

/// Which of the calls that the rest of an aim selects, counted from 1 in the lane's own order.
struct Occurrences {
  enum class Which { nth, first, every, from };
  Which which = Which::from;
  std::uint32_t n = 1;

  bool include(std::uint64_t ordinal) const;
  /// It may strike more than once.
  bool repeat() const { return which == Which::from || which == Which::every || (which == Which::first && n > 1); }
  std::string text() const;  ///< "#2", "first 3", "every 5", "from 7"; empty for every one of them
  bool operator==(const Occurrences&) const = default;
};

/// What is known about a call. `path` and `peer` are empty where the call has none.
struct CallFacts {
  std::string_view call;     ///< the kernel's name
  std::string_view object;   ///< one of object_classes()
  std::string_view path;     ///< absolute, as the service sees it
  std::string_view peer;     ///< "broker:http" for a port of the scenario
  std::string_view address;  ///< "10.77.0.2:7002", "[::1]:80", "unix:/run/x"
  std::optional<std::uint64_t> size, offset;
  std::uint64_t flags = 0;
};

struct Aim {
  std::string call;    ///< this call of the family only; empty: all of them
  std::string object;  ///< this class only; empty: what the family means by itself
  /// fnmatch(3) glob, "*" crosses "/". One that begins with neither "/" nor "*" is below the service's data folder.
  std::string path;
  std::string peer;  ///< a service, "service:port", or an address; fnmatch glob
  std::optional<Range> size, offset;
  std::vector<std::string> flags;  ///< all of these are set: "O_CREAT", "MSG_MORE", ...
  /// Of a link: these messages of each connection, counted from 1 (requests; on UDP the datagrams of a direction).
  std::optional<Range> message;
  std::uint64_t after_bytes = 0;          ///< of a link: only what comes in the stream after so many bytes
  Occurrences occurrences;                ///< of calls; of a link: of its connections (sessions)
  std::string after;                      ///< only once an event that matches this pattern was seen; as written
  std::uint32_t per_million = 1'000'000;  ///< probability of each call that the rest selects
  std::uint64_t seed = 0;                 ///< of the draws
  /// The kernel may answer by itself where no look is needed (kernel_rule.hpp): cheap, but what is struck is not
  /// counted.
  bool uncounted = false;

  /// All but occurrences, `after` and probability. `data_folder` as the service sees it.
  bool selects(const CallFacts& facts, std::string_view data_folder) const;
  /// The draw for the ordinal-th selected call: a pure function of (seed, ordinal).
  bool drawn(std::uint64_t ordinal) const;
  /// "path=*.wal size=1..100 every 3"; empty when nothing is narrowed.
  std::string text() const;
  bool operator==(const Aim&) const = default;
};

/// The bits of a flag's name in a call that takes flags of its kind (open, send, ...); 0 when unknown.
std::uint64_t flag_bits(std::string_view name);
const std::vector<std::string>& flag_names();

Value to_value(const Aim& aim);
/// Errors: bad_input.
base::Expected<Aim> aim_from(const Value& value);

}  // namespace leafcutter::scenarios
