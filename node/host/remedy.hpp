// What a user can do about a capability that was not seen: the setting of this very host that forbids it, where one can
// be told, and the container's option when this is one.
#pragma once

#include <string>

namespace leafcutter::node {

/// `error` is the errno of the step that failed.
std::string remedy_for(const std::string& capability, int error);

}  // namespace leafcutter::node
