// The one place where a fault of DNS in a document becomes faults of the engine.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/fault.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node::runs {

/// The values of `case` in that schema_version.
std::vector<std::string> dns_case_words(int schema_version);

/// `parameters` have been checked against the table of effects. Several faults in a row where one of the document does
/// one thing to some types of questions and another to the rest. Errors: "name: ...", in the words of the document.
base::Expected<std::vector<proxy::Fault>> dns_faults_from(const protocols::Value& parameters, int schema_version,
                                                          proxy::Transport transport, const std::string& id);

}  // namespace leafcutter::node::runs
