#include "rules.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace house {
namespace {

namespace fs = std::filesystem;

/// Ground floor first. A room may include itself and what it lists; nobody includes commands, and node and coordinator
/// meet in actors alone.
const std::map<std::string, std::set<std::string>>& floors() {
  static const std::map<std::string, std::set<std::string>> rooms = {
      {"base", {}},
      {"http", {"base"}},
      {"protocols", {"base"}},
      {"config", {"base"}},
      {"scenarios", {"base", "protocols", "config"}},
      {"actors", {"base", "protocols", "config", "scenarios"}},
      {"node", {"base", "http", "protocols", "config", "scenarios", "actors"}},
      {"coordinator", {"base", "http", "protocols", "config", "scenarios", "actors"}},
      {"commands", {"base", "http", "protocols", "config", "scenarios", "actors", "node", "coordinator"}},
  };
  return rooms;
}

bool is_cpp(const fs::path& file) { return file.extension() == ".cpp" || file.extension() == ".hpp"; }

bool is_text(const fs::path& file) {
  static const std::set<std::string> extensions = {".cpp", ".hpp",  ".txt",  ".cmake", ".sh",
                                                   ".md",  ".yaml", ".json", ""};
  return extensions.count(file.extension().string()) != 0;
}

/// What a line of C++ does, without what it says about it.
std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

struct Line {
  const fs::path& file;  ///< relative
  std::string room;      ///< first folder
  bool example;          ///< below scenarios/library: a program for users to read, which knows no room
  std::size_t number;
  const std::string& text;
};

void check_include(const Line& line, std::vector<Breach>& breaches) {
  static const std::regex include(R"re(^\s*#\s*include\s*(["<])([^">]+)[">])re");
  std::smatch match;
  if (!std::regex_search(line.text, match, include)) return;
  const std::string target = match[2];
  const auto told = [&](const char* rule) { breaches.push_back({rule, line.file.string(), line.number, line.text}); };
  if (target == "caf/all.hpp" || target == "caf/io/all.hpp") told("narrow includes");
  const auto room = target.substr(0, target.find('/'));
  const bool names_room = floors().count(room) != 0 && target.find('/') != std::string::npos;
  const auto own = floors().find(line.room);
  if (line.example) {
    if (names_room) told("floors");
  } else if (own != floors().end()) {
    // A quoted include that starts anywhere but at a room could point anywhere.
    const bool quoted = match[1] == "\"";
    if (quoted && !names_room) told("floors");
    if (names_room && room != own->first && own->second.count(room) == 0) told("floors");
  }
}

void check_line(const Line& line, std::vector<Breach>& breaches) {
  static const std::regex sleeping(R"re(\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|sleep)\s*\()re");
  static const std::regex sleeping_script(R"re((^|[;&|]|\bdo|\bthen)\s*sleep\s)re");
  static const std::regex machine(R"re((^|[^\w.:-])/(work|root|home|farm)/)re");
  const auto told = [&](const char* rule) { breaches.push_back({rule, line.file.string(), line.number, line.text}); };
  if (is_cpp(line.file)) {
    check_include(line, breaches);
    if (std::regex_search(without_comment(line.text), sleeping)) told("no sleeping");
  } else if ((line.file.extension() == ".sh" || line.file.extension().empty()) &&
             std::regex_search(line.text, sleeping_script)) {
    told("no sleeping");
  }
  if (std::regex_search(line.text, machine)) told("machine paths");
}

/// Types that are defined at namespace scope with linkage: two of one name in one namespace are one type to the linker,
/// which keeps either's members. The compiler sees only one of them at a time.
class Definitions {
 public:
  void take(const fs::path& file, const std::string& line) {
    static const std::regex opens(R"re(^namespace (\w+(::\w+)*) \{)re");
    static const std::regex defines(R"re(^(?:class|struct) (\w+)(?: final)?(?: :[^;]*)? \{)re");
    if (file != file_) {
      file_ = file;
      space_.clear();
      hidden_ = false;
    }
    std::smatch match;
    if (std::regex_search(line, match, opens)) space_ = match[1];
    if (line == "namespace {") hidden_ = true;
    if (line == "}  // namespace") hidden_ = false;
    if (!hidden_ && !space_.empty() && std::regex_search(line, match, defines))
      files_[space_ + "::" + match[1].str()].insert(file.string());
  }

  void tell(std::vector<Breach>& breaches) const {
    for (const auto& [type, files] : files_)
      if (files.size() > 1)
        breaches.push_back({"one definition", *files.begin(), 0, type + " is defined again in " + *files.rbegin()});
  }

 private:
  fs::path file_;
  std::string space_;
  bool hidden_ = false;
  std::map<std::string, std::set<std::string>> files_;
};

void check_file(const fs::path& root, const fs::path& file, Definitions& definitions, std::vector<Breach>& breaches) {
  std::ifstream stream(root / file);
  const auto room = file.begin()->string();
  const bool example = file.string().rfind("scenarios/library/", 0) == 0;
  std::size_t number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    if (number == 1 && file.extension() == ".hpp" && text.rfind("// ", 0) != 0)
      breaches.push_back({"header comment", file.string(), 1, text});
    check_line({file, room, example, number, text}, breaches);
    // A program of the tests is linked with one room only, and may name its own types as it likes.
    if (is_cpp(file) && room != "tests" && !example) definitions.take(file, text);
  }
  if (is_cpp(file) && number > longest_file)
    breaches.push_back({"length", file.string(), number, std::to_string(number) + " lines"});
}

}  // namespace

std::vector<Breach> inspect(const fs::path& root) {
  static const std::set<std::string> skipped = {".git", "build", ".leafcutter", ".cache"};
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && skipped.count(entry->path().filename().string()) != 0) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && is_text(entry->path())) {
      files.push_back(fs::relative(entry->path(), root));
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Breach> breaches;
  Definitions definitions;
  for (const auto& file : files) check_file(root, file, definitions, breaches);
  definitions.tell(breaches);
  return breaches;
}

}  // namespace house
