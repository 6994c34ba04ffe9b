#include "node/host/actions/probe.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/unique_fd.hpp"
#include "protocols/dns.hpp"
#include "protocols/http.hpp"

namespace leafcutter::node::host {
namespace {

using base::UniqueFd;
using nlohmann::json;
using protocols::Outcome;
using ProbeClock = std::chrono::steady_clock;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family = AF_UNSPEC;

  std::string text() const {
    std::array<char, INET6_ADDRSTRLEN> out{};
    const void* at = family == AF_INET6
                         ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_addr)
                         : &reinterpret_cast<const sockaddr_in*>(&bytes)->sin_addr;
    return ::inet_ntop(family, at, out.data(), out.size()) != nullptr ? out.data() : "?";
  }
  const char* family_name() const { return family == AF_INET6 ? "IPv6" : "IPv4"; }
};

/// Kept until the resolver is done with it, which may be after us.
struct Lookup {
  std::string host, port;
  addrinfo hints{};
  gaicb request{};
  ~Lookup() {
    if (request.ar_result != nullptr) ::freeaddrinfo(request.ar_result);
  }
};

int probe_left_ms(ProbeClock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - ProbeClock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// The addresses of a name, in the resolver's order. Errors: timeout, unavailable.
base::Expected<std::vector<Address>> look_up(const std::string& host, unsigned port, ProbeClock::time_point deadline) {
  auto lookup = std::make_unique<Lookup>();
  lookup->host = host;
  lookup->port = std::to_string(port);
  lookup->hints.ai_socktype = SOCK_STREAM;
  lookup->request.ar_name = lookup->host.c_str();
  lookup->request.ar_service = lookup->port.c_str();
  lookup->request.ar_request = &lookup->hints;
  std::array<gaicb*, 1> requests = {&lookup->request};
  if (::getaddrinfo_a(GAI_NOWAIT, requests.data(), 1, nullptr) != 0)
    return base::Error{base::ErrorCode::unavailable, "the resolver cannot be asked", {}};
  int state = EAI_INPROGRESS;
  while ((state = ::gai_error(&lookup->request)) == EAI_INPROGRESS) {
    const auto left = probe_left_ms(deadline);
    if (left == 0) {
      if (::gai_cancel(&lookup->request) != EAI_CANCELED) [[maybe_unused]]
        auto* kept = lookup.release();
      return base::Error{base::ErrorCode::timeout, "looking up " + host + " took too long", {}};
    }
    const timespec span{left / 1000, (left % 1000) * 1'000'000};
    const std::array<const gaicb*, 1> waiting = {&lookup->request};
    ::gai_suspend(waiting.data(), 1, &span);
  }
  if (state != 0) return base::Error{base::ErrorCode::unavailable, host + ": " + ::gai_strerror(state), {}};
  std::vector<Address> out;
  for (const auto* one = lookup->request.ar_result; one != nullptr && out.size() < 16; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    address.family = one->ai_family;
    out.push_back(address);
  }
  return out;
}

/// 0, or the errno.
int connect_to(const Address& address, int fd, ProbeClock::time_point deadline) {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd writable{fd, POLLOUT, 0};
  if (::poll(&writable, 1, probe_left_ms(deadline)) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

struct Connected {
  UniqueFd fd;
  Outcome outcome = Outcome::failure;
  std::string detail;
};

/// The first address that answers; all that were tried are in `seen`.
Connected connect_probe(const ProbeEntry& probe, int type, ProbeClock::time_point deadline, json& seen) {
  Connected out;
  seen["tried"] = json::array();
  const auto addresses = look_up(probe.host, probe.port, deadline);
  if (!addresses) {
    out.outcome = addresses.error().code == base::ErrorCode::timeout ? Outcome::timed_out : Outcome::failure;
    out.detail = addresses.error().message;
    return out;
  }
  int last = 0;
  for (const auto& address : *addresses) {
    UniqueFd fd(::socket(address.family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    last = fd ? connect_to(address, fd.get(), deadline) : errno;
    json tried = {{"family", address.family_name()}, {"address", address.text()}, {"connected", last == 0}};
    if (last != 0) tried["error"] = std::strerror(last);
    seen["tried"].push_back(tried);
    out.detail += (out.detail.empty() ? "" : ", ") + std::string(address.family_name()) + " " + address.text() + ": " +
                  (last == 0 ? "connected" : std::strerror(last));
    if (last != 0) continue;
    out.fd = std::move(fd);
    out.outcome = Outcome::success;
    return out;
  }
  out.outcome = last == ETIMEDOUT ? Outcome::timed_out : Outcome::failure;
  return out;
}

/// Up to `most` bytes; nothing at the end of the stream or of the time.
std::string receive_some(int fd, ProbeClock::time_point deadline) {
  std::array<char, 16 * 1024> buffer{};
  pollfd readable{fd, POLLIN, 0};
  if (::poll(&readable, 1, probe_left_ms(deadline)) <= 0) return {};
  const auto n = ::recv(fd, buffer.data(), buffer.size(), 0);
  return n > 0 ? std::string(buffer.data(), static_cast<std::size_t>(n)) : std::string();
}

bool send_whole(int fd, std::string_view bytes, ProbeClock::time_point deadline) {
  while (!bytes.empty()) {
    pollfd writable{fd, POLLOUT, 0};
    if (::poll(&writable, 1, probe_left_ms(deadline)) <= 0) return false;
    const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void ask_http(const ProbeEntry& probe, int fd, ProbeClock::time_point deadline, ProbeResult& result) {
  const auto late = [&] { return ProbeClock::now() >= deadline; };
  const auto fail = [&](const std::string& why) {
    result.outcome = late() ? Outcome::timed_out : Outcome::failure;
    result.detail += "; " + why;
  };
  const auto host = (probe.host.find(':') != std::string::npos ? "[" + probe.host + "]" : probe.host) + ":" +
                    std::to_string(probe.port);
  if (!send_whole(fd, protocols::format_request("GET", probe.path, host, {}, ""), deadline))
    return fail("the request is not taken");
  protocols::HttpReader reader(protocols::HttpReader::Role::response, 4096);
  for (;;) {
    const auto bytes = receive_some(fd, deadline);
    if (bytes.empty()) return fail(late() ? "no answer in time" : "the connection ended without an answer");
    const auto taken = reader.feed(bytes);
    if (!taken) return fail("what is answered is not HTTP");
    if (const auto* head = reader.head()) {
      result.seen["status"] = head->status;
      result.detail += "; status " + std::to_string(head->status);
      result.outcome = head->status / 100 == 2 ? Outcome::success : Outcome::failure;
      return;
    }
  }
}

void ask_dns(const ProbeEntry& probe, int fd, ProbeClock::time_point deadline, ProbeResult& result) {
  const auto fail = [&](Outcome outcome, const std::string& why) {
    result.outcome = outcome;
    result.detail += "; " + why;
  };
  const auto name = protocols::DnsName::from_text(probe.name);
  if (!name) return fail(Outcome::failure, name.error().message);
  protocols::DnsMessage question;
  question.id = static_cast<std::uint16_t>(ProbeClock::now().time_since_epoch().count());
  question.recursion_desired = true;
  question.questions = {{*name, protocols::dns_type::a, protocols::dns_class::in}};
  const auto bytes = protocols::encode_dns(question);
  if (!bytes || !send_whole(fd, *bytes, deadline)) return fail(Outcome::failure, "the question is not taken");
  for (int datagrams = 0; datagrams < 16; ++datagrams) {
    const auto reply = receive_some(fd, deadline);
    if (reply.empty()) {
      const bool late = ProbeClock::now() >= deadline;
      return fail(late ? Outcome::timed_out : Outcome::failure, late ? "no answer in time" : "nobody answers there");
    }
    const auto answer = protocols::parse_dns(reply);
    if (!answer || !answer->response || answer->id != question.id || answer->questions != question.questions) continue;
    result.seen["rcode"] = answer->rcode;
    result.seen["answers"] = answer->answers.size();
    return fail(answer->rcode == 0 && !answer->answers.empty() ? Outcome::success : Outcome::failure,
                "rcode " + std::to_string(answer->rcode) + ", " + std::to_string(answer->answers.size()) + " answers");
  }
  fail(Outcome::failure, "only datagrams that answer something else");
}

}  // namespace

ProbeResult run_probe(const ProbeEntry& probe) {
  const auto begin = ProbeClock::now(), deadline = begin + probe.within;
  ProbeResult result;
  result.seen = json::object();
  const bool dns = probe.kind == ProbeEntry::Kind::dns;
  auto connected = connect_probe(probe, dns ? SOCK_DGRAM : SOCK_STREAM, deadline, result.seen);
  result.outcome = connected.outcome;
  result.detail = connected.detail;
  if (connected.fd && probe.kind == ProbeEntry::Kind::http) ask_http(probe, connected.fd.get(), deadline, result);
  if (connected.fd && dns) ask_dns(probe, connected.fd.get(), deadline, result);
  result.seen["milliseconds"] =
      std::chrono::duration_cast<std::chrono::milliseconds>(ProbeClock::now() - begin).count();
  return result;
}

}  // namespace leafcutter::node::host
