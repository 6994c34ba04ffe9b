// The proxy of one UDP link: carries datagrams in sessions, one for each socket of the caller's, through the network
// fault engine, which has the link's faults. It is handed sockets that already live in the right network namespaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/links/cut.hpp"
#include "node/links/engine_host.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// The references outlive the proxy.
struct DatagramContext {
  EngineHost& engine;
  Recorder& recorder;
  SiteBook& sites;
  Activity& activity;
};

class DatagramProxy {
 public:
  /// A fresh non-blocking UDP socket in the callee's network, connected to the callee's port. Called at the beginning
  /// of each session, on the engine's threads.
  using Dial = std::function<base::Expected<base::UniqueFd>()>;

  /// `sockets` are bound in the caller's network. `further` are faults of the embedder's own (a filter that knows the
  /// messages, say), which come after those of the plan. From now on the link carries.
  static base::Expected<std::unique_ptr<DatagramProxy>> start(DatagramContext context, const scenarios::Link& link,
                                                              std::vector<base::UniqueFd> sockets, Dial dial,
                                                              std::vector<proxy::Fault> further = {});
  ~DatagramProxy();

  const std::string& lane() const;

  /// Rules whose event was seen meanwhile are in force when it returns. On one thread, not the engine's.
  base::Status catch_up();

  /// On one thread, not the engine's. Datagrams are lost while it lasts.
  base::Status begin_cut(const Cut& cut);
  base::Status end_cut(const std::string& id);

 private:
  struct State;
  explicit DatagramProxy(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leafcutter::node
