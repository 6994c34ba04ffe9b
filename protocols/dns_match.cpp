#include "protocols/dns_match.hpp"

#include <algorithm>

namespace leafcutter::protocols {

base::Expected<DnsPattern> DnsPattern::parse(std::string_view text) {
  if (text == "*") return DnsPattern(Reach::all, DnsName());
  const bool below = text.substr(0, 2) == "*.";
  const auto rest = below ? text.substr(2) : text;
  for (std::size_t at = 0; at < rest.size(); ++at) {
    if (rest[at] == '\\') {
      ++at;
    } else if (rest[at] == '*') {
      return base::Error{base::ErrorCode::bad_input,
                         "`" + std::string(text) +
                             "` is not a pattern for names: `*` stands for all the first parts of a name, as in "
                             "`*.internal`; write that, or one whole name, or `*` for every name",
                         {}};
    }
  }
  auto name = DnsName::from_text(rest);
  if (!name) return name.error();
  return DnsPattern(below ? Reach::below : Reach::one, std::move(*name));
}

bool DnsPattern::matches(const DnsName& name) const {
  switch (reach_) {
    case Reach::one: return same_name(name, name_);
    case Reach::below: return name.wire().size() > name_.wire().size() && at_or_below(name, name_);
    case Reach::all: break;
  }
  return true;
}

std::string DnsPattern::text() const {
  if (reach_ == Reach::all) return "*";
  auto text = name_.text();
  // A label that is a `*` itself must not read back as a pattern.
  for (std::size_t at = 0; (at = text.find('*', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return reach_ == Reach::below ? "*." + text : text;
}

base::Expected<DnsMatch> DnsMatch::parse(std::string_view name, const std::vector<std::string>& types) {
  auto pattern = DnsPattern::parse(name);
  if (!pattern) return pattern.error();
  std::vector<std::uint16_t> numbers;
  for (const auto& type : types) {
    const auto number = dns_type_number(type);
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  return DnsMatch(std::move(*pattern), std::move(numbers));
}

bool DnsMatch::matches(const DnsQuestion& question) const {
  return name_.matches(question.name) &&
         (types_.empty() || std::find(types_.begin(), types_.end(), question.type) != types_.end());
}

}  // namespace leafcutter::protocols
