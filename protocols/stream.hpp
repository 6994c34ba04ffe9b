// The event stream's framing: what a leaf says to its node and a node to the coordinator over DEALER -> ROUTER, and the
// acknowledgements that come back. Two frames a message: a header (msgpack) and the chunk it describes
// (protocols/event.hpp). Delivery is at least once; (execution, base) lets every receiver drop what it has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::protocols {

struct BatchHeader {
  std::string execution;    ///< which run of which leaf, unique: "<address>#<attempt>"
  std::uint64_t base = 0;   ///< how many events of this execution came in earlier batches
  std::uint64_t count = 0;  ///< events in this chunk
  bool last = false;        ///< the chunk ends the execution: it holds `leaf.end`
};

/// Cumulative: everything of `execution` before `next` is stored; the sender may forget it.
struct Ack {
  std::string execution;
  std::uint64_t next = 0;
  bool complete = false;  ///< the last batch is stored as well
};

std::string encode(const BatchHeader& header);
std::string encode(const Ack& ack);
base::Expected<BatchHeader> decode_batch_header(std::string_view bytes);
base::Expected<Ack> decode_ack(std::string_view bytes);

/// What a receiver does with a batch that arrives when `next` events are stored.
enum class Intake { store, store_tail, duplicate, gap };
Intake classify(const BatchHeader& header, std::uint64_t next);

}  // namespace leafcutter::protocols
