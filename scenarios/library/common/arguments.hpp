// Command lines of the form `--name value --switch`, for the library's example services.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace library {

class Arguments {
 public:
  /// Everything after "--" is left in rest().
  Arguments(int argc, char** argv, const std::vector<std::string>& switches = {}) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--") {
        rest_.assign(argv + i + 1, argv + argc);
        return;
      }
      if (word.rfind("--", 0) != 0) {
        rest_.push_back(word);
        continue;
      }
      bool is_switch = false;
      for (const auto& name : switches) is_switch = is_switch || word == "--" + name;
      if (!is_switch && i + 1 == argc) throw std::runtime_error(word + ": a value is missing");
      values_[word.substr(2)] = is_switch ? "" : argv[++i];
    }
  }

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::string& at(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error("--" + name + " is missing");
    return found->second;
  }
  int number(const std::string& name) const { return std::stoi(at(name)); }
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> rest_;
};

}  // namespace library
