#include "actors/trust/openssl.hpp"

#include <openssl/err.h>

#include <array>

namespace leafcutter::actors {

base::Error openssl_error(const std::string& what, base::ErrorCode code) {
  std::array<char, 256> reason{};
  if (const auto first = ERR_get_error(); first != 0) ERR_error_string_n(first, reason.data(), reason.size());
  // The queue belongs to the thread: what is left in it would be taken for the next operation's failure.
  ERR_clear_error();
  return base::Error{code, reason[0] == '\0' ? what : what + ": " + reason.data()};
}

std::string bytes_of(BIO& memory) {
  char* start = nullptr;
  const auto size = BIO_get_mem_data(&memory, &start);
  return size > 0 ? std::string(start, static_cast<std::size_t>(size)) : std::string();
}

BioPtr reader_of(std::string_view bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

}  // namespace leafcutter::actors
