#include "node/leaf/outlet.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace leafcutter::node {
namespace {

using base::UniqueFd;

// One message each way: a letter and a text, and with an answer perhaps a descriptor.
constexpr std::size_t outlet_message_limit = 1024;
constexpr char outlet_asks_name = 'n', outlet_asks_four = '4', outlet_asks_six = '6', outlet_answers = '+',
               outlet_refuses = '-';

bool send_text(int channel, const std::string& text, int descriptor = -1) {
  std::string bytes = text.substr(0, outlet_message_limit);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    auto* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(channel, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

struct OutletMessage {
  std::string text;  ///< empty: the other end has gone, or does not answer
  UniqueFd descriptor;
  int error = 0;
};

OutletMessage receive_text(int channel) {
  OutletMessage got;
  std::array<char, outlet_message_limit> buffer{};
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t size = 0;
  do {
    size = ::recvmsg(channel, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) got.error = errno;
  if (size > 0) got.text.assign(buffer.data(), static_cast<std::size_t>(size));
  for (auto* rights = CMSG_FIRSTHDR(&header); size > 0 && rights != nullptr; rights = CMSG_NXTHDR(&header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
    got.descriptor.reset(descriptor);
  }
  return got;
}

std::string looked_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &first); error != 0)
    return outlet_refuses + std::string(::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, ::freeaddrinfo);
  std::string out(1, outlet_answers);
  std::size_t count = 0;
  for (const auto* one = first; one != nullptr && count < Outlet::most_addresses; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    out += (count++ > 0 ? " " : "") + std::string(text.data());
  }
  return out;
}

base::Error no_outlet_answer(const OutletMessage& got, const std::string& what) {
  if (!got.text.empty()) return {base::ErrorCode::unavailable, what + ": " + got.text.substr(1), {}};
  if (got.error == EAGAIN)
    return {
        base::ErrorCode::timeout, what + ": no answer within " + std::to_string(Outlet::patience.count()) + " s", {}};
  return {base::ErrorCode::unavailable, what + ": the process in the host's network has gone", {}};
}

}  // namespace

Outlet::Outlet(UniqueFd channel) : channel_(std::move(channel)) {
  const timeval limit{patience.count(), 0};
  if (channel_) ::setsockopt(channel_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

base::Expected<std::vector<std::string>> Outlet::look_up(const std::string& host) {
  const auto what = "look up " + host;
  if (!send_text(channel_.get(), outlet_asks_name + host)) return no_outlet_answer({}, what);
  const auto got = receive_text(channel_.get());
  if (got.text.empty() || got.text.front() != outlet_answers) return no_outlet_answer(got, what);
  std::vector<std::string> addresses;
  for (std::size_t begin = 1; begin < got.text.size();) {
    const auto end = std::min(got.text.find(' ', begin), got.text.size());
    addresses.push_back(got.text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (addresses.empty()) return base::Error{base::ErrorCode::unavailable, what + ": it has no address", {}};
  return addresses;
}

base::Expected<UniqueFd> Outlet::open_socket(int family) {
  const std::string what = "socket in the host's network";
  if (!send_text(channel_.get(), std::string(1, family == AF_INET6 ? outlet_asks_six : outlet_asks_four)))
    return no_outlet_answer({}, what);
  auto got = receive_text(channel_.get());
  if (got.text.empty() || got.text.front() != outlet_answers || !got.descriptor) return no_outlet_answer(got, what);
  return std::move(got.descriptor);
}

base::Expected<std::pair<UniqueFd, UniqueFd>> outlet_channel() {
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return base::system_error("socketpair for a way out of a leaf", errno);
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

void run_outlet(UniqueFd channel) {
  for (;;) {
    const auto asked = receive_text(channel.get());
    if (asked.text.empty()) return;
    const char what = asked.text.front();
    bool sent = false;
    if (what == outlet_asks_name) {
      sent = send_text(channel.get(), looked_up(asked.text.substr(1)));
    } else {
      const UniqueFd fresh(
          ::socket(what == outlet_asks_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const std::string answer =
          fresh ? std::string(1, outlet_answers) : outlet_refuses + std::string(std::strerror(errno));
      sent = send_text(channel.get(), answer, fresh.get());
    }
    if (!sent) return;
  }
}

}  // namespace leafcutter::node
