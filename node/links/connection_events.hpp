// What the trace says of a connection of a link: that it was opened, or refused, and how it ended.
#pragma once

#include <cstdint>
#include <string>

#include "node/observe/recorder.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

struct ConnectionEnd {
  std::uint64_t connection = 0;
  std::uint64_t up_bytes = 0, down_bytes = 0;
  std::string cause;
  std::string detail = {};
};

void record_opening(Recorder& recorder, const scenarios::Link& link, const std::string& lane, std::uint64_t connection,
                    bool accepted);
void record_end(Recorder& recorder, const scenarios::Link& link, const std::string& lane, const ConnectionEnd& end);

}  // namespace leafcutter::node
