#include "coordinator/report/markup.hpp"

#include "coordinator/judge/attributes.hpp"

namespace leafcutter::coordinator {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : valid_text(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\t':
      case '\n': out += c; break;
      default: out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string script_json(const protocols::Value& value) {
  std::string out;
  // Within JSON these stand only inside strings, where the escape means the same character.
  for (const char c : value.dump(-1, ' ', false, protocols::Value::error_handler_t::replace)) {
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  }
  return out;
}

}  // namespace leafcutter::coordinator
