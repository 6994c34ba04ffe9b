#include "protocols/stream.hpp"

#include "protocols/event.hpp"

namespace leafcutter::protocols {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;

/// A header is a name and a few numbers; anything larger is not one.
constexpr std::size_t header_bytes = 4096;

Error bad_header(const std::string& what) { return Error{ErrorCode::protocol, what}; }

/// The map in `bytes`, with `execution` checked.
Expected<Value> header_map(std::string_view bytes, const char* what) {
  if (bytes.size() > header_bytes) {
    return bad_header(std::string(what) + " of " + std::to_string(bytes.size()) + " bytes; at most " +
                      std::to_string(header_bytes) + " are accepted");
  }
  auto map = unpack(bytes);
  if (!map) return bad_header(std::string(what) + ": " + map.error().message);
  if (!map->is_object()) return bad_header(std::string(what) + ": expected a map, found " + map->type_name());
  const auto execution = map->find("execution");
  if (execution == map->end() || !execution->is_string() || execution->get_ref<const std::string&>().empty()) {
    return bad_header(std::string(what) + " names no execution");
  }
  return map;
}

bool read_count(const Value& map, const char* name, std::uint64_t& out) {
  const auto found = map.find(name);
  if (found == map.end() || !found->is_number_unsigned()) return false;
  out = found->get<std::uint64_t>();
  return true;
}

bool read_flag(const Value& map, const char* name, bool& out) {
  const auto found = map.find(name);
  if (found == map.end() || !found->is_boolean()) return false;
  out = found->get<bool>();
  return true;
}

}  // namespace

std::string encode(const BatchHeader& header) {
  return pack(
      Value{{"execution", header.execution}, {"base", header.base}, {"count", header.count}, {"last", header.last}});
}

std::string encode(const Ack& ack) {
  return pack(Value{{"execution", ack.execution}, {"next", ack.next}, {"complete", ack.complete}});
}

Expected<BatchHeader> decode_batch_header(std::string_view bytes) {
  const auto map = header_map(bytes, "a batch header");
  if (!map) return map.error();
  BatchHeader header;
  header.execution = (*map)["execution"].get<std::string>();
  if (!read_count(*map, "base", header.base) || !read_count(*map, "count", header.count)) {
    return bad_header("a batch header needs `base` and `count`, both counts");
  }
  if (!read_flag(*map, "last", header.last)) return bad_header("a batch header needs `last`, true or false");
  // The sum is compared everywhere; one that wraps would turn a gap into a duplicate.
  if (header.base + header.count < header.base) return bad_header("a batch header whose `base` + `count` overflows");
  return header;
}

Expected<Ack> decode_ack(std::string_view bytes) {
  const auto map = header_map(bytes, "an acknowledgement");
  if (!map) return map.error();
  Ack ack;
  ack.execution = (*map)["execution"].get<std::string>();
  if (!read_count(*map, "next", ack.next)) return bad_header("an acknowledgement needs `next`, a count");
  if (!read_flag(*map, "complete", ack.complete)) {
    return bad_header("an acknowledgement needs `complete`, true or false");
  }
  return ack;
}

Intake classify(const BatchHeader& header, std::uint64_t next) {
  if (header.base > next) return Intake::gap;
  if (header.base == next) return header.count > 0 || header.last ? Intake::store : Intake::duplicate;
  return header.base + header.count > next ? Intake::store_tail : Intake::duplicate;
}

}  // namespace leafcutter::protocols
