// A write to a file, as the syscall supervisor describes it to the site book.
#pragma once

#include <string_view>

#include "scenarios/aim.hpp"

namespace leafcutter::node {

inline scenarios::CallFacts call_on(std::string_view path) {
  scenarios::CallFacts facts;
  facts.call = "write";
  facts.object = "file";
  facts.path = path;
  return facts;
}

}  // namespace leafcutter::node
