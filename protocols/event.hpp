// One observed fact of a leaf, and the form in which facts travel: msgpack maps in zstd frames, whose concatenation is
// a trace again. The same bytes go over ZeroMQ, into the ledger's blob store and into bundles.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::protocols {

/// A dynamic value. Object keys are kept sorted, so a dump is canonical.
using Value = nlohmann::json;

/// Lane -> the number of that lane's events known to have happened before (the lane's own event included).
using VectorClock = std::map<std::string, std::uint64_t>;

inline constexpr int trace_schema = 1;

struct Event {
  std::string lane;       ///< a service, "workload", a link ("shop -> broker"), or "leaf" for the runner itself
  std::uint64_t seq = 0;  ///< counts from 1 within the lane
  VectorClock clock;
  std::chrono::nanoseconds at{0};  ///< monotonic, since the leaf began
  std::string kind;                ///< one of scenarios/event_kinds.hpp
  Value attrs = Value::object();
  Value unknown = Value::object();  ///< fields of a newer schema, kept as they came
};

bool operator==(const Event& a, const Event& b);

/// Bounds on what decode_chunk accepts, against bytes from outside.
struct DecodeLimits {
  std::size_t frame_bytes = 16u << 20;  ///< decompressed size of one chunk
  std::size_t events = 1u << 20;        ///< events of one chunk
};

/// One zstd frame that holds the events as consecutive msgpack maps {v, lane, seq, clock, at, kind, attrs, ...unknown}.
std::string encode_chunk(const std::vector<Event>& events);

/// The events of one or more concatenated chunks. Errors: protocol (torn frame, not msgpack, wrong types, over a
/// limit).
base::Expected<std::vector<Event>> decode_chunks(std::string_view bytes, const DecodeLimits& limits = {});

/// Any Value as msgpack and back; decoding is bounded in depth and in the sizes that the bytes announce.
std::string pack(const Value& value);
base::Expected<Value> unpack(std::string_view bytes);

}  // namespace leafcutter::protocols
