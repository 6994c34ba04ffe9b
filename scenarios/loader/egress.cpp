// `egress`: what may leave a leaf. Strict: whatever is not written exactly here stays inside.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "scenarios/loader/loading.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::scenarios::loading {
namespace {

/// RFC 952 and 1123: labels of letters, digits and hyphens. Numbers and dots alone are a mistyped address.
bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  bool letters = false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('.', begin), text.size());
    const auto label = text.substr(begin, end - begin);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
    for (const char c : label) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 || (std::isalnum(byte) == 0 && c != '-')) return false;
      letters = letters || std::isalpha(byte) != 0;
    }
    begin = end + 1;
  }
  return letters;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class EgressReader {
 public:
  explicit EgressReader(Loading& loading) : loading_(loading) {}

  void read(const Node& node) {
    if (!node.is_map()) return;
    const auto callers = read_callers(node.find("from"));
    WayOut way;
    const bool known = read_destination(node.find("to"), way.to);
    const auto* port = node.find("port");
    way.port = static_cast<std::uint16_t>(number_of(port, 0));
    const bool placed = read_place(node.find("at"), way);
    if (!known || !placed || way.port == 0) return;
    for (const auto& caller : callers) {
      way.from = caller;
      way.where = loading_.notes.place(node);
      add(node, way);
    }
  }

 private:
  std::vector<std::string> read_callers(const Node* node) {
    std::vector<std::string> callers;
    if (node == nullptr) return callers;
    std::vector<const Node*> names;
    if (node->is_scalar()) names = {node};
    for (const auto& item : node->items) names.push_back(&item);
    auto all = service_names(loading_.scenario);
    all.emplace_back(workload_lane);
    for (const auto* one : names) {
      if (!one->is_scalar() || one->text.empty()) continue;
      if (std::find(all.begin(), all.end(), one->text) == all.end())
        loading_.notes.error(
            *one, "\"" + one->text + "\" is neither a service nor \"workload\"" + suggestion(one->text, all));
      else
        callers.push_back(one->text);
    }
    return callers;
  }

  bool refuse(const Node& at, const std::string& message) {
    loading_.notes.error(at, message);
    return false;
  }

  bool read_destination(const Node* node, std::string& to) {
    if (node == nullptr || !node->is_scalar() || node->text.empty()) return false;
    const auto& text = node->text;
    if (loading_.scenario.service(text) != nullptr)
      return refuse(
          *node, "\"" + text +
                     "\" is a service of this scenario, and stays inside: give it a link instead, \"caller -> " + text +
                     "\"");
    if (const auto address = canonical_address(text)) {
      if (const auto why = why_no_destination(*address); !why.empty()) return refuse(*node, "\"" + text + "\" " + why);
      to = *address;
      return true;
    }
    if (!is_host_name(text))
      return refuse(*node, "expected the name or the address of a host, without a port, found \"" + text + "\"");
    to = lower_case(text);
    return true;
  }

  /// "127.0.0.1:8443", "[::1]:8443", "staging.example.org:443".
  bool read_place(const Node* node, WayOut& way) {
    if (node == nullptr) return true;
    if (!node->is_scalar() || node->text.empty()) return false;
    const auto& text = node->text;
    const auto colon = text.rfind(':');
    auto host = text.substr(0, colon == std::string::npos ? 0 : colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    const auto address = canonical_address(host);
    unsigned port = 0;
    const auto* end = text.data() + text.size();
    const auto* digits = colon == std::string::npos ? end : text.data() + colon + 1;
    const bool number = std::from_chars(digits, end, port).ptr == end && digits != end && port > 0 && port <= 65535;
    const bool six = host.find(':') != std::string::npos;
    if (!number || six != bracketed || (!address && !is_host_name(host)))
      return refuse(*node,
                    "expected where it really is, such as \"127.0.0.1:8443\" or \"staging.example.org:443\", found \"" +
                        text + "\"");
    way.at_host = address ? *address : lower_case(host);
    way.at_port = static_cast<std::uint16_t>(port);
    return true;
  }

  void add(const Node& node, const WayOut& way) {
    auto& scenario = loading_.scenario;
    for (const auto& other : scenario.ways_out)
      if (other.lane() == way.lane()) {
        loading_.notes.error(node, "\"" + way.lane() + "\" is allowed twice");
        return;
      }
    if (way.to_loopback() && taken_at_home(node, way)) return;
    scenario.ways_out.push_back(way);
    if (outside_addresses(scenario).size() > most_names_outside)
      loading_.notes.error(node,
                           "more than " + std::to_string(most_names_outside) + " names of hosts outside of the leaf");
  }

  /// Its own loopback leads there: nothing else may be at that port.
  bool taken_at_home(const Node& node, const WayOut& way) {
    const auto port = std::to_string(way.port);
    if (const auto* service = loading_.scenario.service(way.from))
      for (const auto& own : service->ports)
        if (own.number == way.port && own.protocol != Protocol::udp) {
          loading_.notes.error(node, "port " + port + " of " + way.to + " is port \"" + own.name + "\" of service \"" +
                                         way.from + "\" itself");
          return true;
        }
    for (const auto& link : loading_.scenario.links)
      if (link.from == way.from && link.number == way.port && !link.is_datagrams()) {
        loading_.notes.error(node, "port " + port + " of " + way.to + " leads \"" + way.from + "\" to the link \"" +
                                       link.id() + "\"; take the link away, or give this another name in `to`");
        return true;
      }
    return false;
  }

  Loading& loading_;
};

}  // namespace

void load_egress(Loading& loading) {
  const auto* node = loading.document.find("egress");
  if (node == nullptr || !node->is_list()) return;
  EgressReader reader(loading);
  for (const auto& item : node->items) reader.read(item);
}

}  // namespace leafcutter::scenarios::loading
