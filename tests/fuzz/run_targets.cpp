#include "run_targets.hpp"

#include <stdexcept>
#include <string_view>

#include "node/runs/loader.hpp"
#include "node/runs/recording.hpp"

namespace fuzz {
namespace {

using namespace leafcutter;
using namespace leafcutter::node;

void keep(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

void check_errors(const runs::RunLoadResult& result, const std::string& file) {
  keep(result.run.has_value() == result.errors.empty(), "a run with mistakes, or none without a mistake");
  for (const auto& error : result.errors) {
    keep(error.code == base::ErrorCode::bad_input, "a mistake in a document that is not bad input");
    keep(!error.message.empty() && error.where.file == file, "a mistake that does not say what and where");
  }
}

/// What the engine is promised: it refuses nothing of a run that was loaded.
void check_run(const runs::Run& run) {
  keep(!run.proxies.empty() && !run.phases.empty(), "a run without proxies or phases");
  std::chrono::nanoseconds end{0};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const auto& phase = run.phases[i];
    keep(phase.duration.has_value() || i + 1 == run.phases.size(), "a phase without end before the last");
    keep(phase.sets.size() == run.proxies.size(), "a phase without a set for every proxy");
    keep(runs::phase_at(run, end).phase == i, "phases do not follow each other");
    if (phase.duration) {
      keep(phase.duration->count() > 0, "a phase of no length");
      end += *phase.duration;
    }
    for (const auto& spec : run.proxies)
      keep(proxy::checked(phase.sets.at(spec.name), spec.transport).ok(), "the engine refuses what was loaded");
  }
}

}  // namespace

int read_run_document(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto yaml = runs::load_run_text(text, "r.yaml"), json = runs::load_run_text(text, "r.json");
  check_errors(yaml, "r.yaml");
  check_errors(json, "r.json");
  if (yaml.run) check_run(*yaml.run);
  if (json.run) check_run(*json.run);
  return yaml.run || json.run ? 0 : 1;
}

int read_journal(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto recording = runs::read_recording_text(text, "j");
  if (!recording) {
    keep(recording.error().where.file == "j" && recording.error().where.line > 0, "a mistake that does not say where");
    return 1;
  }
  keep(recording->decisions != nullptr, "a recording without decisions");
  return 0;
}

}  // namespace fuzz
