// The inquiries into a campaign's failing groups, as a value: confirm, minimize, confirm what is minimal. Told of cases
// and of the results of what it ordered, it says what to run next and what was concluded. A function of the cases and
// of each execution's result, never of the order in which either comes; results of before a restart are remembered, so
// that it goes on where it stood.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/campaign/case_file.hpp"
#include "coordinator/campaign/inquiry.hpp"
#include "coordinator/campaign/run_book.hpp"

namespace leafcutter::coordinator {

class Casebook {
 public:
  /// A result of before, of an execution that some inquiry ordered. Before any case is opened.
  void remember(const Result& result) { book_.remember(result); }

  /// A case that is open already changes nothing.
  Inquired open(const Cases& files);

  /// A result of what was ordered. One that is not wanted changes nothing.
  Inquired take(const Result& result);

 private:
  struct Case {
    std::shared_ptr<const CaseFile> file;
    std::vector<Inquiry> inquiries;  ///< into its suspects, one after another
    bool concluded = false;
  };
  Inquired advance();
  std::optional<Conclusion> pursue(Case& open);

  RunBook book_;  ///< one for all: two properties of one leaf are confirmed by the same runs
  std::map<std::string, Case> cases_;
};

}  // namespace leafcutter::coordinator
