// Metrics as Prometheus reads them (text exposition format 0.0.4).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leafcutter::http {

class Exposition {
 public:
  static constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Begins a family; `type` is "counter", "gauge" or "histogram". Samples belong to the latest one.
  void family(const std::string& name, const std::string& type, const std::string& help);
  void sample(const Labels& labels, const std::string& value);
  void sample(const Labels& labels, std::uint64_t value) { sample(labels, std::to_string(value)); }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

}  // namespace leafcutter::http
