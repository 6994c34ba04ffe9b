#include "coordinator/search/candidates.hpp"

#include <fnmatch.h>

#include <string>
#include <tuple>

namespace leafcutter::coordinator {
namespace {

constexpr std::string_view data_prefix = "data:";

// The program never calls setlocale, so that fnmatch compares bytes.
bool glob_matches(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

bool fits(const scenarios::FaultChoice& choice, const scenarios::Site& site) {
  if (choice.lane != site.lane || choice.operation != site.operation) return false;
  // Files elsewhere are sites only because some glob names them.
  if (choice.path_glob.empty()) return !site.resource.starts_with('/');
  if (glob_matches(choice.path_glob, site.resource)) return true;
  return site.resource.starts_with(data_prefix) &&
         glob_matches(choice.path_glob, site.resource.substr(data_prefix.size()));
}

std::vector<scenarios::Fault> faults_at(const std::vector<scenarios::FaultChoice>& choices, const scenarios::Site& site,
                                        std::uint32_t first, std::uint32_t last) {
  std::vector<scenarios::Fault> faults;
  for (const auto& choice : choices) {
    if (!fits(choice, site)) continue;
    for (std::uint64_t n = first; n <= last; ++n)
      faults.push_back({choice.kind, site, static_cast<std::uint32_t>(n), choice.params});
  }
  return faults;
}

bool FaultLess::operator()(const scenarios::Fault& a, const scenarios::Fault& b) const {
  const auto key = [](const scenarios::Fault& f) { return std::tie(f.site, f.occurrence, f.kind); };
  if (key(a) != key(b)) return key(a) < key(b);
  if (a.params != b.params) return a.params.dump() < b.params.dump();
  const auto aim = [](const scenarios::Fault& f) { return f.aim ? scenarios::to_value(*f.aim).dump() : ""; };
  return aim(a) < aim(b);
}

}  // namespace leafcutter::coordinator
