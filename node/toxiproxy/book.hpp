// Which proxies there are and which toxics each has, and what a change of that means for the engine: a request becomes
// steps, each with the operations that it takes and the proxy as it is afterwards. Values only; whoever carries the
// operations out says how that went.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "node/toxiproxy/input.hpp"
#include "node/toxiproxy/toxic.hpp"

namespace leafcutter::node::toxiproxy {

struct Proxy {
  std::string name;
  std::string listen;  ///< as listened on: ports are resolved; as it was given while nothing has listened yet
  std::string asked;   ///< as it was given
  std::string upstream;
  bool enabled = true;
  bool linked = false;  ///< the engine has a link of the name, which keeps its port while the proxy is disabled
  std::vector<Toxic> toxics = {};  ///< in the order in which they were added

  const Toxic* toxic(const std::string& toxic_name) const;
  bool operator==(const Proxy&) const = default;
};

struct AddLink {
  std::string name, listen, upstream;
  proxy::FaultSet faults;
  bool enabled = true;
  bool operator==(const AddLink&) const = default;
};
struct RemoveLink {
  std::string name;
  bool operator==(const RemoveLink&) const = default;
};
/// All of them in one step.
struct ReplaceFaults {
  std::map<std::string, proxy::FaultSet> sets;
  bool operator==(const ReplaceFaults&) const = default;
};
struct SetEnabled {
  std::string name;
  bool enabled = true;
  bool operator==(const SetEnabled&) const = default;
};
using Operation = std::variant<AddLink, RemoveLink, ReplaceFaults, SetEnabled>;

/// Carries an operation out; for AddLink the address listened on, else nothing.
using Perform = std::function<base::Expected<std::string>(const Operation&)>;

/// How many connections the proxy has accepted since it has had its link.
using CountAccepted = std::function<std::uint64_t(const std::string& proxy)>;

struct Step {
  std::string proxy;
  std::optional<Proxy> after = {};  ///< nothing: there is none any more
  std::vector<Operation> operations = {};
  std::vector<Operation> undo = {};  ///< when one of the operations failed
};

struct Change {
  std::vector<Step> steps;
  bool goes_on = false;  ///< with the other steps, when one failed
};

struct Outcome {
  std::vector<std::string> done;  ///< proxies whose step succeeded
  std::optional<base::Error> failed;
};

/// "localhost:1" and ":1" as they are listened on, and no address as a free port of this host's own.
std::string listen_address(const std::string& given);

class Book {
 public:
  const std::map<std::string, Proxy>& proxies() const { return proxies_; }
  const Proxy* find(const std::string& name) const;

  // What each request comes to. Errors: bad_input (400) or conflict (409), nothing is to be done.
  base::Expected<Change> create(const ProxyInput& input, Notes& notes) const;
  base::Expected<Change> populate(const std::vector<ProxyInput>& inputs, const CountAccepted& accepted,
                                  Notes& notes) const;
  base::Expected<Change> update(const Proxy& proxy, const ProxyInput& input) const;
  Change remove(const Proxy& proxy) const;
  base::Expected<Change> add_toxic(const Proxy& proxy, Toxic toxic) const;
  Change replace_toxic(const Proxy& proxy, Toxic toxic) const;
  Change remove_toxic(const Proxy& proxy, const std::string& toxic) const;
  /// Enables every proxy and removes every toxic.
  Change reset() const;

  /// Does it, and remembers what succeeded.
  Outcome carry_out(const Change& change, const Perform& perform);

 private:
  std::optional<base::Error> carry_out(const Step& step, const Perform& perform);
  std::map<std::string, Proxy> proxies_;
};

}  // namespace leafcutter::node::toxiproxy
