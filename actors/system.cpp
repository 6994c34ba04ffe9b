#include "actors/system.hpp"

#include <algorithm>
#include <caf/atom.hpp>
#include <caf/io/middleman.hpp>
#include <charconv>
#include <string_view>

#include "actors/messages.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;

Error bad_address(const std::string& text, const std::string& why) {
  return Error{ErrorCode::bad_input,
               "`" + text + "` is not an address: " + why + "; one looks like 127.0.0.1:4730 or [::1]:4730"};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  // All of 127/8; digits and dots only, so that a name such as 127.example.org does not pass.
  return host.starts_with("127.") &&
         std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace

SystemConfig::SystemConfig(bool network) {
  add_message_types<caf::id_block::leafcutter>();
  // Idle workers sleep instead of polling for work to steal: a node has better use for its cores.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::size_t{2});
  if (!network) return;
  load<caf::io::middleman>();
  set("middleman.app-identifiers", std::vector<std::string>{"leafcutter/" + std::to_string(protocol_version)});
  // Off by default in CAF, and needed on both sides: a frozen peer or a cut cable is noticed by nothing else.
  set("middleman.heartbeat-interval", caf::timespan{std::chrono::seconds(1)});
  set("middleman.connection-timeout", caf::timespan{std::chrono::seconds(5)});
}

base::Expected<HostPort> parse_host_port(const std::string& text) {
  const std::string_view whole(text);
  const auto cut = whole.rfind(':');
  if (cut == std::string_view::npos) return bad_address(text, "it has no port");
  auto host = whole.substr(0, cut);
  const auto digits = whole.substr(cut + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad_address(text, "an IPv6 host is written in brackets");
  }
  if (host.empty()) return bad_address(text, "it has no host");
  HostPort out;
  out.host = host;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) {
    return bad_address(text, "the port `" + std::string(digits) + "` is not a number from 0 to 65535");
  }
  return out;
}

base::Status require_loopback(const HostPort& address) {
  if (is_loopback(address.host)) return base::ok();
  return Error{ErrorCode::bad_input, "`" + address.host +
                                         "` can be reached by others and there are no keys to tell friend from foe; "
                                         "a loopback address such as 127.0.0.1 would do"};
}

}  // namespace leafcutter::actors
