// The lookups of one service of a leaf: counts each at its site, strikes it as the plan says, and answers it otherwise.
// No sockets: a message and how it came in, the answer and when it is to leave out.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "node/dns_faults/dns_fault.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "node/resolver/zone.hpp"

namespace leafcutter::node::resolver {

/// A fault of the plan as one of node/dns_faults. Errors: bad_input (its kind strikes no lookups, its parameters are
/// not the kind's).
base::Expected<dns_faults::DnsFault> dns_fault_of(const scenarios::Fault& fault);

struct Answer {
  std::optional<std::string> bytes;  ///< none: silence
  std::chrono::nanoseconds delay{0};
  std::optional<std::size_t> ends = {};  ///< the fault that is over when this has been said (or kept back)
};

class Lookups {
 public:
  /// The references outlive it.
  Lookups(const Zone& zone, SiteBook& sites, Recorder& recorder, std::string service);

  /// The same query (ID, name, type, transport) is the same lookup, sent again, and meets the same fate: resolver
  /// libraries send again from new sockets, too.
  Answer ask(std::string_view message, proxy::Transport transport);

  /// The answer has left, or was not to.
  void over(std::size_t fault);

 private:
  struct Struck {
    std::size_t index = 0;
    scenarios::Fault fault;
    std::string random;  ///< names its draws
    bool last = true;    ///< of its `times`
  };
  struct Seen {
    std::uint16_t id = 0;
    proxy::Transport transport = proxy::Transport::udp;
    std::vector<Struck> struck;
  };
  struct Row {
    Struck struck;
    std::uint64_t left = 0;
  };

  const std::vector<Struck>& fate(const protocols::DnsMessage& query, proxy::Transport transport, bool& again);
  std::vector<Struck> visit(const std::string& resource);
  bool apply(const Struck& struck, const protocols::DnsMessage& query, proxy::Transport transport, Answer& answer,
             Value& evidence) const;
  void fired(const Struck& struck, const protocols::DnsMessage& query, proxy::Transport transport, Value evidence);

  const Zone& zone_;
  SiteBook& sites_;
  Recorder& recorder_;
  std::string service_, lane_;
  std::map<std::string, std::deque<Seen>> seen_;  ///< by resource, the latest in front
  std::map<std::string, std::vector<Row>> rows_;  ///< faults that strike several lookups in a row, by resource
};

}  // namespace leafcutter::node::resolver
