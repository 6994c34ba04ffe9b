// The dashboard of `leafcutter proxy` on a terminal.
#include "commands/proxy_view.hpp"

namespace leafcutter::commands {

std::unique_ptr<ProxyView> make_dashboard(node::runs::Time start, bool) { return make_text_view(start); }

}  // namespace leafcutter::commands
