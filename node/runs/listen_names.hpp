// The names that the proxies of a Run listen on, looked up beside the thread that wants to know: name servers may be
// silent for long, and signals, phases and edits are not to wait for them. Names of upstreams are the engine's
// business.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/proxy/resolver.hpp"
#include "node/runs/run.hpp"

namespace leafcutter::node::runs {

/// To be called from one thread.
class ListenNames {
 public:
  /// What has not been answered by then is not waited for.
  static constexpr std::chrono::seconds patience{10};

  explicit ListenNames(proxy::Resolver::Lookup lookup = proxy::resolve_host);

  /// Asks for every name; what was asked before is forgotten.
  void ask(const Run& run);

  /// Readable when all is known.
  int fd() const { return all_known_.get(); }
  bool known() const;

  /// Gives each proxy the address of its name. Errors: bad_input at the place of a name that has none (yet).
  base::Status settle(Run& run) const;

 private:
  void answered(std::uint64_t question, const std::string& host, const proxy::Resolver::Addresses& addresses);

  base::UniqueFd all_known_;
  mutable std::mutex mutex_;  ///< of what follows: answers come on the resolver's threads
  std::uint64_t question_ = 0;
  std::size_t unanswered_ = 0;
  std::map<std::string, proxy::Resolver::Addresses> answers_;  ///< by the name
  proxy::Resolver resolver_;                                   ///< last: it calls nothing any more when it is gone
};

}  // namespace leafcutter::node::runs
