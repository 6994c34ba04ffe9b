// The faults of one proxy in one phase, from nodes of a Run document to the engine's own. The structure has been
// checked; what is looked at here is what values mean, and whether the engine takes them on that transport.
#pragma once

#include <string>
#include <vector>

#include "node/proxy/fault.hpp"
#include "node/runs/effects.hpp"
#include "scenarios/loader/document.hpp"

namespace leafcutter::node::runs {

struct FaultContext {
  int schema_version = 1;
  proxy::Transport transport = proxy::Transport::tcp;
};

class FaultReader {
 public:
  FaultReader(FaultContext context, scenarios::loading::Notes& notes) : context_(context), notes_(notes) {}

  /// What a fault waits for, not looked at yet.
  struct After {
    std::string fault;  ///< id
    const scenarios::loading::Node* node = nullptr;
    std::string path;
  };

  /// Null or malformed nodes yield nothing: they have been reported.
  std::vector<proxy::Fault> read(const scenarios::loading::Node* list, const std::string& path);
  /// Of those that were read.
  const std::vector<After>& waiting() const { return waiting_; }

 private:
  using Node = scenarios::loading::Node;
  std::vector<proxy::Fault> read_one(const EffectKind& kind, const Node& node, const std::string& path,
                                     const std::string& id);
  std::vector<proxy::Fault> read_dns(const EffectKind& kind, const Node& node, const std::string& path,
                                     const std::string& id);
  bool accepted(const proxy::Fault& fault, const Node& node, const std::string& path);
  bool on_transport(const EffectKind& kind, const Node& node, const std::string& path);
  void settle_first_version(const EffectKind& kind, proxy::Fault& fault) const;
  void read_selector(const Node* node, proxy::Selector& selector) const;
  void read_probability(const EffectKind& kind, const Node& node, const std::string& path, proxy::Selector& selector);
  void complain(const Node& node, const std::string& path, const std::string& complaint);

  FaultContext context_;
  std::vector<After> waiting_;
  scenarios::loading::Notes& notes_;
};

}  // namespace leafcutter::node::runs
