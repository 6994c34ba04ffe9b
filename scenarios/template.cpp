#include "scenarios/template.hpp"

#include <utility>

namespace leafcutter::scenarios {

base::Expected<std::vector<TemplatePart>> split_template(const std::string& text) {
  std::vector<TemplatePart> parts;
  std::string literal;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.compare(at, 3, "$${") == 0) {
      literal += "${";
      at += 3;
    } else if (text.compare(at, 2, "${") == 0) {
      const auto end = text.find('}', at);
      if (end == std::string::npos)
        return base::Error{base::ErrorCode::bad_input,
                           "\"" + text.substr(at) + "\" lacks its closing brace; a literal \"${\" is written \"$${\"",
                           {}};
      const auto name = text.substr(at + 2, end - at - 2);
      if (name.empty()) return base::Error{base::ErrorCode::bad_input, "\"${}\" names nothing", {}};
      if (!literal.empty()) parts.push_back({false, std::exchange(literal, {})});
      parts.push_back({true, name});
      at = end + 1;
    } else {
      literal += text[at++];
    }
  }
  if (!literal.empty()) parts.push_back({false, literal});
  return parts;
}

}  // namespace leafcutter::scenarios
