#include "node/runs/dns_effect.hpp"

namespace leafcutter::node::runs {

base::Expected<proxy::Effect> dns_effect(const protocols::Value&) {
  return base::Error{base::ErrorCode::bad_input,
                     "dns: this version cannot carry out faults of DNS; blackhole and latency act on its datagrams"};
}

}  // namespace leafcutter::node::runs
