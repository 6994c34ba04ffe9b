#include "http/exposition.hpp"

namespace leafcutter::http {
namespace {

std::string escaped_label(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace

void Exposition::family(const std::string& name, const std::string& type, const std::string& help) {
  name_ = name;
  text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void Exposition::sample(const Labels& labels, const std::string& value) {
  text_ += name_;
  for (std::size_t i = 0; i < labels.size(); ++i)
    text_ += (i == 0 ? "{" : ",") + labels[i].first + "=\"" + escaped_label(labels[i].second) + "\"";
  text_ += (labels.empty() ? " " : "} ") + value + "\n";
}

}  // namespace leafcutter::http
