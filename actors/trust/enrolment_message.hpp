// What a host asks of an authority and what it is answered: one msgpack map each way, with its length in four bytes
// before it, over TLS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::actors {

struct EnrolmentRequest {
  std::string secret;        ///< of a join token; empty: the key that the connection shows is to be replaced
  std::string request;       ///< a certificate request (PEM)
  std::int64_t overlap = 0;  ///< seconds for which the replaced key stays good
  bool operator==(const EnrolmentRequest&) const = default;
};

struct EnrolmentAnswer {
  std::string refusal;      ///< why not; empty: enrolled
  std::string certificate;  ///< all PEM
  std::string authority;
  std::string campaign;  ///< public key that campaigns are signed with
  bool operator==(const EnrolmentAnswer&) const = default;
};

inline constexpr std::size_t enrolment_bytes = 16 * 1024;

std::string encode(const EnrolmentRequest& request);
std::string encode(const EnrolmentAnswer& answer);
/// Of a whole message without its length. Errors: protocol.
base::Expected<EnrolmentRequest> decode_enrolment_request(std::string_view bytes);
base::Expected<EnrolmentAnswer> decode_enrolment_answer(std::string_view bytes);

/// `message` with its length before it.
std::string framed(const std::string& message);
/// The message at the front of `bytes` when it is there whole. Errors: protocol (longer than any of ours).
base::Expected<std::optional<std::string>> unframed(std::string_view bytes);

}  // namespace leafcutter::actors
