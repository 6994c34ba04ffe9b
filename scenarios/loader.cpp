#include "scenarios/loader.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "scenarios/loader/loading.hpp"
#include "scenarios/loader/structure.hpp"

namespace leafcutter::scenarios {
namespace {

namespace fs = std::filesystem;

LoadResult failed(const std::string& file, const std::string& message) {
  LoadResult result;
  result.errors.push_back({base::ErrorCode::bad_input, message, {file, 0, 0}});
  return result;
}

bool is_scenario(const fs::path& file) {
  const auto text = base::read_file(file.string());
  return text && (text->starts_with("leafcutter:") || text->find("\nleafcutter:") != std::string::npos);
}

/// The scenario of a folder. Errors: none, or several to choose from.
base::Expected<std::string> find_in_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "scenario.yaml", error)) return (folder / "scenario.yaml").string();
  std::vector<std::string> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto extension = entry->path().extension();
    if ((extension == ".yaml" || extension == ".yml") && is_scenario(entry->path()))
      found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  if (error) return base::Error{base::ErrorCode::bad_input, "cannot read the folder: " + error.message(), {}};
  if (found.empty())
    return base::Error{
        base::ErrorCode::bad_input,
        "the folder holds no scenario: neither scenario.yaml nor another .yaml file with the key \"leafcutter\"",
        {}};
  if (found.size() > 1)
    return base::Error{base::ErrorCode::bad_input,
                       "the folder holds several scenarios, name one of them: " + base::join_names(found),
                       {}};
  return found.front();
}

}  // namespace

LoadResult load_file(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  auto file = path;
  if (fs::is_directory(path, error)) {
    auto found = find_in_folder(path);
    if (!found) return failed(path, found.error().message);
    file = *found;
  }
  const auto text = base::read_file(file);
  if (!text) return failed(file, text.error().message);
  return load_text(*text, file, options);
}

LoadResult load_text(std::string_view text, const std::string& file, const LoadOptions& options) {
  loading::Notes notes(file);
  LoadResult result;
  const auto document = loading::parse_document(text, notes);
  if (document) {
    const bool readable = loading::check_structure(*document, notes);
    loading::Loading work{*document, options, notes, {}, false, {}};
    auto& scenario = work.scenario;
    std::error_code error;
    // The real folder: a leaf shows it at that path, whatever links led there.
    const auto path = fs::absolute(file, error).lexically_normal();
    scenario.folder = fs::weakly_canonical(path.parent_path(), error).string();
    scenario.file = (fs::path(scenario.folder) / path.filename()).string();
    scenario.text = text;
    scenario.variant = options.variant;
    scenario.name = loading::text_of(document->find("name"));
    scenario.about = loading::text_of(document->find("about"));
    if (readable) {
      load_services(work);
      load_links(work);
      load_egress(work);
      load_workload(work);
      load_properties(work);
      load_explore(work);
      if (const auto& known = scenario.variants;
          !options.variant.empty() && std::find(known.begin(), known.end(), options.variant) == known.end())
        notes.error(0, 0,
                    "no service has a variant \"" + options.variant + "\"" +
                        (known.empty() ? "; there are none" : loading::suggestion(options.variant, known)));
    }
    if (!notes.any_error()) result.scenario = std::move(scenario);
  }
  result.errors = notes.errors();
  result.warnings = notes.warnings();
  return result;
}

}  // namespace leafcutter::scenarios
