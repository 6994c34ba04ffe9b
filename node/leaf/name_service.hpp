// The resolvers of a leaf: one for each service whose lookups of names may be struck, in that service's network, where
// its resolv.conf says. The other services keep the names of their hosts file and have none.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "node/leaf/context.hpp"
#include "node/resolver/server.hpp"
#include "node/resolver/zone.hpp"

namespace leafcutter::node {

class NameService {
 public:
  /// Starts them; null when no service asks. On the main thread, before any service is started. Errors: io.
  static base::Expected<std::unique_ptr<NameService>> start(LeafContext& context);

 private:
  explicit NameService(const std::map<std::string, std::vector<std::string>>& addresses) : zone_(addresses) {}
  resolver::Zone zone_;
  std::vector<std::unique_ptr<resolver::Server>> servers_;
};

}  // namespace leafcutter::node
