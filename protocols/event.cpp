#include "protocols/event.hpp"

#include <zstd.h>

#include <limits>
#include <memory>
#include <msgpack.hpp>

namespace leafcutter::protocols {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;

/// Deeper nesting than this is not ours; the bound keeps a hostile document from exhausting the stack later on.
constexpr std::size_t max_depth = 64;

/// A chunk larger than this is split into several frames, so that a receiver with the default limits can read it.
constexpr std::size_t split_bytes = 8u << 20;

constexpr int compression_level = 3;

Error malformed(const std::string& what) { return Error{ErrorCode::protocol, what}; }

// --- Value -> msgpack
// -------------------------------------------------------------------------------------------------

using Packer = msgpack::packer<msgpack::sbuffer>;

/// msgpack announces sizes in 32 bits; nothing that we make comes near.
std::uint32_t size32(std::size_t size) {
  if (size > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("a value of 4 GiB or more");
  return static_cast<std::uint32_t>(size);
}

void pack_text(Packer& out, std::string_view text) {
  out.pack_str(size32(text.size()));
  out.pack_str_body(text.data(), size32(text.size()));
}

void pack_value(Packer& out, const Value& value) {
  switch (value.type()) {
    case Value::value_t::null:
    case Value::value_t::discarded: out.pack_nil(); break;
    case Value::value_t::boolean:
      if (value.get<bool>())
        out.pack_true();
      else
        out.pack_false();
      break;
    case Value::value_t::number_integer: out.pack(value.get<std::int64_t>()); break;
    case Value::value_t::number_unsigned: out.pack(value.get<std::uint64_t>()); break;
    case Value::value_t::number_float: out.pack(value.get<double>()); break;
    case Value::value_t::string: pack_text(out, value.get_ref<const std::string&>()); break;
    case Value::value_t::binary: {
      const auto& bytes = value.get_binary();
      out.pack_bin(size32(bytes.size()));
      out.pack_bin_body(reinterpret_cast<const char*>(bytes.data()), size32(bytes.size()));
      break;
    }
    case Value::value_t::array:
      out.pack_array(size32(value.size()));
      for (const auto& item : value) pack_value(out, item);
      break;
    case Value::value_t::object:
      out.pack_map(size32(value.size()));
      for (const auto& [key, item] : value.items()) {
        pack_text(out, key);
        pack_value(out, item);
      }
      break;
  }
}

// --- msgpack -> Value
// -------------------------------------------------------------------------------------------------

/// Builds a Value while msgpack parses. Nothing is reserved for announced sizes: five bytes may announce four billion
/// elements, memory follows the bytes that are really there. An announcement beyond the input is refused at once.
class ValueBuilder : public msgpack::null_visitor {
 public:
  explicit ValueBuilder(std::size_t input) : input_(input) { stack_.push_back({&root_, {}}); }

  bool visit_nil() { return put(nullptr); }
  bool visit_boolean(bool v) { return put(v); }
  bool visit_positive_integer(std::uint64_t v) { return put(v); }
  bool visit_negative_integer(std::int64_t v) { return put(v); }
  bool visit_float32(float v) { return put(static_cast<double>(v)); }
  bool visit_float64(double v) { return put(v); }
  bool visit_str(const char* text, std::uint32_t size) {
    if (in_key_) {
      key_.assign(text, size);
      return true;
    }
    return put(std::string(text, size));
  }
  bool visit_bin(const char* data, std::uint32_t size) {
    return put(Value::binary(std::vector<std::uint8_t>(data, data + size)));
  }
  bool visit_ext(const char*, std::uint32_t) { return refuse("an extension type"); }

  bool start_array(std::uint32_t count) { return open(Value::array(), count); }
  bool end_array() { return close(); }
  bool start_map(std::uint32_t count) { return open(Value::object(), count); }
  bool end_map() { return close(); }
  bool start_map_key() {
    in_key_ = true;
    return true;
  }
  bool end_map_key() {
    in_key_ = false;
    stack_.back().key = std::move(key_);
    return true;
  }

  void parse_error(std::size_t, std::size_t) { refuse("a byte that msgpack does not know"); }
  void insufficient_bytes(std::size_t, std::size_t) { refuse("the end of the bytes within a value"); }

  const std::string& refusal() const { return refusal_; }
  Value take() { return std::move(root_); }

 private:
  struct Level {
    Value* target;
    std::string key;
  };

  bool refuse(const char* what) {
    if (refusal_.empty()) refusal_ = what;
    return false;
  }

  /// Puts the value where it belongs and returns its place, or nullptr.
  Value* place(Value value) {
    if (in_key_) return refuse("a map key that is not text"), nullptr;
    auto& level = stack_.back();
    if (level.target->is_array()) return &level.target->emplace_back(std::move(value));
    if (level.target->is_object()) {
      const auto [where, added] = level.target->emplace(std::move(level.key), std::move(value));
      if (!added) return refuse("a map key twice"), nullptr;
      return &*where;
    }
    *level.target = std::move(value);
    return level.target;
  }

  bool put(Value value) { return place(std::move(value)) != nullptr; }

  bool open(Value container, std::uint32_t count) {
    if (count > input_) return refuse("more elements announced than there are bytes");
    if (stack_.size() > max_depth) return refuse("values nested too deeply");
    auto* const where = place(std::move(container));
    if (!where) return false;
    stack_.push_back({where, {}});
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  std::size_t input_;
  Value root_;
  std::vector<Level> stack_;
  std::string key_, refusal_;
  bool in_key_ = false;
};

/// One value at `offset`, which moves behind it.
Expected<Value> unpack_at(std::string_view bytes, std::size_t& offset) {
  ValueBuilder builder(bytes.size() - offset);
  std::size_t taken = offset;
  const bool parsed = msgpack::parse(bytes.data(), bytes.size(), taken, builder);
  if (!parsed || taken <= offset) {
    const auto& why = builder.refusal();
    return malformed("not msgpack: found " + (why.empty() ? std::string("no value") : why) + " at or after byte " +
                     std::to_string(offset) + " of " + std::to_string(bytes.size()));
  }
  offset = taken;
  return builder.take();
}

// --- Event <-> Value
// --------------------------------------------------------------------------------------------------

void pack_event(Packer& out, const Event& event) {
  // An event of a newer schema keeps its version with its fields; ours never holds a name that we know.
  const auto version = event.unknown.find("v");
  const bool newer = version != event.unknown.end();
  out.pack_map(size32(7 + event.unknown.size() - (newer ? 1 : 0)));
  pack_text(out, "v");
  if (newer)
    pack_value(out, *version);
  else
    out.pack(trace_schema);
  pack_text(out, "lane");
  pack_text(out, event.lane);
  pack_text(out, "seq");
  out.pack(event.seq);
  pack_text(out, "clock");
  out.pack_map(size32(event.clock.size()));
  for (const auto& [lane, count] : event.clock) {
    pack_text(out, lane);
    out.pack(count);
  }
  pack_text(out, "at");
  out.pack(static_cast<std::int64_t>(event.at.count()));
  pack_text(out, "kind");
  pack_text(out, event.kind);
  pack_text(out, "attrs");
  pack_value(out, event.attrs);
  for (const auto& [name, value] : event.unknown.items()) {
    if (name == "v") continue;
    pack_text(out, name);
    pack_value(out, value);
  }
}

Error bad_field(const std::string& name, const char* expected, const Value* found) {
  return malformed("event field `" + name + "`: expected " + expected + ", found " +
                   (found ? std::string(found->type_name()) : std::string("nothing")));
}

/// Takes a field out of the map, so that what remains is what we do not know.
bool extract(Value& map, const char* name, Value& out) {
  const auto found = map.find(name);
  if (found == map.end()) return false;
  out = std::move(*found);
  map.erase(found);
  return true;
}

bool is_count(const Value& value) { return value.is_number_unsigned(); }

bool fits_int64(const Value& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
}

Expected<Event> event_from(Value map) {
  if (!map.is_object()) return malformed("expected an event (a map), found " + std::string(map.type_name()));
  Event event;
  Value field;
  if (!extract(map, "v", field)) return bad_field("v", "the schema version", nullptr);
  if (!is_count(field) || field.get<std::uint64_t>() == 0) return bad_field("v", "a positive number", &field);
  const Value version = std::move(field);

  if (!extract(map, "lane", field)) return bad_field("lane", "text", nullptr);
  if (!field.is_string()) return bad_field("lane", "text", &field);
  event.lane = std::move(field.get_ref<std::string&>());

  if (!extract(map, "seq", field)) return bad_field("seq", "a count", nullptr);
  if (!is_count(field)) return bad_field("seq", "a count", &field);
  event.seq = field.get<std::uint64_t>();

  if (!extract(map, "clock", field)) return bad_field("clock", "a map", nullptr);
  if (!field.is_object()) return bad_field("clock", "a map", &field);
  for (const auto& [lane, count] : field.items()) {
    if (!is_count(count)) return bad_field("clock." + lane, "a count", &count);
    event.clock.emplace(lane, count.get<std::uint64_t>());
  }

  if (!extract(map, "at", field)) return bad_field("at", "nanoseconds", nullptr);
  if (!fits_int64(field)) return bad_field("at", "nanoseconds in 63 bits", &field);
  event.at = std::chrono::nanoseconds(field.get<std::int64_t>());

  if (!extract(map, "kind", field)) return bad_field("kind", "text", nullptr);
  if (!field.is_string()) return bad_field("kind", "text", &field);
  event.kind = std::move(field.get_ref<std::string&>());

  if (!extract(map, "attrs", field)) return bad_field("attrs", "a map", nullptr);
  if (!field.is_object()) return bad_field("attrs", "a map", &field);
  event.attrs = std::move(field);

  event.unknown = std::move(map);
  if (version != Value(trace_schema)) event.unknown["v"] = version;
  return event;
}

// --- frames
// -----------------------------------------------------------------------------------------------------------

std::string compress(const char* data, std::size_t size) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (!context) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, compression_level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string frame(ZSTD_compressBound(size), '\0');
  const std::size_t written = ZSTD_compress2(context.get(), frame.data(), frame.size(), data, size);
  if (ZSTD_isError(written)) throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(written));
  frame.resize(written);
  return frame;
}

Expected<std::string> decompress(std::string_view frame, std::size_t at_most) {
  const auto announced = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (announced == ZSTD_CONTENTSIZE_ERROR) return malformed("a chunk does not begin with a zstd frame");
  // Our encoder always announces the size; a frame that does not is not ours, and reading it would need another bound.
  if (announced == ZSTD_CONTENTSIZE_UNKNOWN) return malformed("a zstd frame does not announce its size");
  if (announced > at_most) {
    return malformed("a chunk announces " + std::to_string(announced) + " bytes; at most " + std::to_string(at_most) +
                     " are accepted");
  }
  std::string bytes(static_cast<std::size_t>(announced), '\0');
  const std::size_t read = ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size());
  if (ZSTD_isError(read)) return malformed(std::string("a torn or damaged chunk: ") + ZSTD_getErrorName(read));
  bytes.resize(read);
  return bytes;
}

base::Status decode_frame(std::string_view frame, const DecodeLimits& limits, std::vector<Event>& out) {
  auto bytes = decompress(frame, limits.frame_bytes);
  if (!bytes) return bytes.error();
  std::size_t offset = 0;
  std::size_t count = 0;
  while (offset < bytes->size()) {
    if (++count > limits.events) {
      return malformed("a chunk holds more than " + std::to_string(limits.events) + " events");
    }
    auto value = unpack_at(*bytes, offset);
    if (!value) return value.error();
    auto event = event_from(std::move(*value));
    if (!event) return event.error();
    out.push_back(std::move(*event));
  }
  return base::ok();
}

}  // namespace

bool operator==(const Event& a, const Event& b) {
  return a.lane == b.lane && a.seq == b.seq && a.clock == b.clock && a.at == b.at && a.kind == b.kind &&
         a.attrs == b.attrs && a.unknown == b.unknown;
}

std::string encode_chunk(const std::vector<Event>& events) {
  std::string chunk;
  msgpack::sbuffer buffer;
  Packer out(buffer);
  for (const auto& event : events) {
    pack_event(out, event);
    if (buffer.size() >= split_bytes) {
      chunk += compress(buffer.data(), buffer.size());
      buffer.clear();
    }
  }
  if (buffer.size() > 0 || chunk.empty()) chunk += compress(buffer.data(), buffer.size());
  return chunk;
}

Expected<std::vector<Event>> decode_chunks(std::string_view bytes, const DecodeLimits& limits) {
  std::vector<Event> events;
  while (!bytes.empty()) {
    const std::size_t size = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
    if (ZSTD_isError(size)) return malformed(std::string("a torn or damaged chunk: ") + ZSTD_getErrorName(size));
    const auto decoded = decode_frame(bytes.substr(0, size), limits, events);
    if (!decoded) return decoded.error();
    bytes.remove_prefix(size);
  }
  return events;
}

std::string pack(const Value& value) {
  msgpack::sbuffer buffer;
  Packer out(buffer);
  pack_value(out, value);
  return {buffer.data(), buffer.size()};
}

Expected<Value> unpack(std::string_view bytes) {
  std::size_t offset = 0;
  auto value = unpack_at(bytes, offset);
  if (!value) return value;
  if (offset != bytes.size()) {
    return malformed(std::to_string(bytes.size() - offset) + " bytes follow the value");
  }
  return value;
}

}  // namespace leafcutter::protocols
