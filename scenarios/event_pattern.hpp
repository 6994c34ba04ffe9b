// Event patterns on one line, as the `after` of a rule and the `until` of a hold write them: an event kind and matchers
// over its attributes, "reply from=shop status=2xx path=/^.orders/". Values mean what they mean in a scenario.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "scenarios/model.hpp"
#include "scenarios/words.hpp"

namespace leafcutter::scenarios {

/// Which names a pattern may use; what is empty allows everything.
struct EventScope {
  std::vector<std::string> events;    ///< kinds that can be seen here
  std::vector<std::string> services;  ///< for `service`, `from`, `to`
  std::vector<std::string> lanes;     ///< for `lane`
};

/// Nothing: `mistake` says why and where.
std::optional<Pattern> read_event_pattern(std::string_view text, const EventScope& scope, Mistake& mistake);

/// The same for text that has been checked before. Errors: bad_input; the column counts bytes of `text`, from 1.
base::Expected<Pattern> parse_event_pattern(std::string_view text);

}  // namespace leafcutter::scenarios
