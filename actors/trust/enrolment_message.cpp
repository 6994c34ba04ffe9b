#include "actors/trust/enrolment_message.hpp"

#include "protocols/event.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using protocols::Value;

constexpr int enrolment_version = 1;
constexpr std::size_t length_bytes = 4;

Error not_enrolment(const std::string& why) { return Error{ErrorCode::protocol, "not a message of enrolment: " + why}; }

Expected<Value> enrolment_map(std::string_view bytes) {
  if (bytes.size() > enrolment_bytes) return not_enrolment("too long");
  auto map = protocols::unpack(bytes);
  if (!map || !map->is_object()) return not_enrolment("no map");
  const auto version = map->find("version");
  if (version == map->end() || !version->is_number_integer() || *version != enrolment_version)
    return not_enrolment("another version; the same release on both sides would do");
  return map;
}

bool read_text(const Value& map, const char* name, std::string& out) {
  const auto found = map.find(name);
  if (found == map.end() || !found->is_string()) return false;
  out = found->get<std::string>();
  return true;
}

}  // namespace

std::string encode(const EnrolmentRequest& request) {
  return protocols::pack(Value{{"version", enrolment_version},
                               {"secret", request.secret},
                               {"request", request.request},
                               {"overlap", static_cast<std::uint64_t>(request.overlap)}});
}

std::string encode(const EnrolmentAnswer& answer) {
  return protocols::pack(Value{{"version", enrolment_version},
                               {"refusal", answer.refusal},
                               {"certificate", answer.certificate},
                               {"authority", answer.authority},
                               {"campaign", answer.campaign}});
}

Expected<EnrolmentRequest> decode_enrolment_request(std::string_view bytes) {
  const auto map = enrolment_map(bytes);
  if (!map) return map.error();
  EnrolmentRequest request;
  const auto overlap = map->find("overlap");
  if (!read_text(*map, "secret", request.secret) || !read_text(*map, "request", request.request) ||
      overlap == map->end() || !overlap->is_number_unsigned())
    return not_enrolment("it asks for nothing");
  const auto seconds = overlap->get<std::uint64_t>();
  if (seconds > INT32_MAX) return not_enrolment("an overlap of decades");
  request.overlap = static_cast<std::int64_t>(seconds);
  return request;
}

Expected<EnrolmentAnswer> decode_enrolment_answer(std::string_view bytes) {
  const auto map = enrolment_map(bytes);
  if (!map) return map.error();
  EnrolmentAnswer answer;
  if (!read_text(*map, "refusal", answer.refusal) || !read_text(*map, "certificate", answer.certificate) ||
      !read_text(*map, "authority", answer.authority) || !read_text(*map, "campaign", answer.campaign))
    return not_enrolment("it answers nothing");
  return answer;
}

std::string framed(const std::string& message) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(message.size() >> shift & 0xff);
  return out + message;
}

Expected<std::optional<std::string>> unframed(std::string_view bytes) {
  if (bytes.size() < length_bytes) return std::optional<std::string>();
  std::size_t size = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  if (size > enrolment_bytes) return not_enrolment("too long");
  if (bytes.size() - length_bytes < size) return std::optional<std::string>();
  return std::optional<std::string>(bytes.substr(length_bytes, size));
}

}  // namespace leafcutter::actors
