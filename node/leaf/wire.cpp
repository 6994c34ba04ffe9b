#include "node/leaf/wire.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace leafcutter::node {

base::Status send_message(int socket, const protocols::Value& message) {
  const auto body = protocols::pack(message);
  if (body.size() > wire_limit)
    return base::Error{base::ErrorCode::internal, "a message exceeds the limit of the wire", {}};
  std::string bytes(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(body.size() >> (8 * i) & 0xff);
  bytes += body;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const auto n = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::system_error("send between launcher and nursery", errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return base::ok();
}

base::Expected<bool> WireReader::fill(int socket) {
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto n = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n < 0 && errno == ECONNRESET) return false;
    if (n < 0) return base::system_error("receive between launcher and nursery", errno);
    if (n == 0) return false;
    bytes_.append(buffer.data(), static_cast<std::size_t>(n));
    if (static_cast<std::size_t>(n) < buffer.size()) return true;
  }
}

base::Expected<std::optional<protocols::Value>> WireReader::next() {
  if (bytes_.size() < 4) return std::optional<protocols::Value>{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
  if (size > wire_limit)
    return base::Error{base::ErrorCode::protocol, "a message between launcher and nursery is too long", {}};
  if (bytes_.size() < 4 + size) return std::optional<protocols::Value>{};
  auto value = protocols::unpack(std::string_view(bytes_).substr(4, size));
  bytes_.erase(0, 4 + size);
  if (!value) return value.error();
  if (!value->is_object())
    return base::Error{base::ErrorCode::protocol, "a message between launcher and nursery is no map", {}};
  return std::optional<protocols::Value>(std::move(*value));
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "killed by signal " + std::to_string(WTERMSIG(wait_status));
  return "exit status " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace leafcutter::node
