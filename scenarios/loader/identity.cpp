// What a scenario is, as a digest: its text, its variant, and the files of its own folder that its commands and data
// name.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::scenarios {
namespace {

namespace fs = std::filesystem;

class Files {
 public:
  explicit Files(const Scenario& scenario) : folder_(scenario.folder) {}

  void add_words(const std::vector<std::string>& words) {
    for (const auto& word : words) add(word);
  }

  /// A word of a command that names a file inside the folder, or anything below a folder there.
  void add(std::string word) {
    constexpr std::string_view reference = "${scenario}";
    if (word.starts_with(reference)) word = folder_.string() + word.substr(reference.size());
    if (word.empty() || word.find("${") != std::string::npos || word.front() == '-') return;
    std::error_code error;
    const auto path = (word.front() == '/' ? fs::path(word) : folder_ / word).lexically_normal();
    const auto relative = path.lexically_relative(folder_);
    if (relative.empty() || *relative.begin() == ".." || relative == ".") return;
    if (fs::is_regular_file(path, error)) files_.insert(relative.string());
  }

  void add_folder(const std::string& folder) {
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->is_regular_file(error)) files_.insert(entry->path().lexically_relative(folder_).string());
  }

  std::string listing() const {
    std::string text;
    for (const auto& file : files_) {
      const auto bytes = base::read_file((folder_ / file).string());
      text += file + '\0' + (bytes ? base::sha256(*bytes) : "unreadable") + '\n';
    }
    return text;
  }

 private:
  fs::path folder_;
  std::set<std::string> files_;  // sorted: the order of a folder's entries is the file system's own
};

void add_steps(Files& files, const std::vector<Step>& steps) {
  for (const auto& step : steps) {
    files.add_words(step.command);
    add_steps(files, step.steps);
    for (const auto& branch : step.branches) add_steps(files, branch);
  }
}

}  // namespace

std::string identity(const Scenario& scenario) {
  Files files(scenario);
  for (const auto& service : scenario.services) {
    files.add_words(service.run);
    files.add_words(service.ready.command);
    for (const auto& command : service.prepare) files.add_words(command);
    for (const auto& [name, value] : service.environment) files.add(value);
    if (!service.seed_data.empty()) files.add_folder(service.seed_data);
  }
  add_steps(files, scenario.workload);
  for (const auto& property : scenario.properties) files.add_words(property.check.command);
  return base::sha256("leafcutter scenario 1\n" + base::sha256(scenario.text) + "\n" + scenario.variant + "\n" +
                      files.listing());
}

}  // namespace leafcutter::scenarios
