#include "commands/progress.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace leafcutter::commands {
namespace {

std::string eta(const actors::Progress& progress) {
  if (progress.done == 0 || progress.known <= progress.done) return "";
  const auto left =
      (progress.known - progress.done) * static_cast<std::uint64_t>(progress.elapsed_ms) / progress.done / 1000;
  return left < 90 ? fmt::format("  ETA {}s", left) : fmt::format("  ETA {}m{:02}s", left / 60, left % 60);
}

}  // namespace

std::string progress_text(const actors::Progress& progress) {
  const auto rate = progress.elapsed_ms > 0
                        ? 1000.0 * static_cast<double>(progress.done) / static_cast<double>(progress.elapsed_ms)
                        : 0.0;
  return fmt::format("{:<9}{}/{} leaves  {:.1f}/s  {} slots  {} failing  {} finding{}{}", progress.phase, progress.done,
                     progress.known, rate, progress.slots, progress.failing, progress.findings,
                     progress.findings == 1 ? "" : "s", eta(progress));
}

void ProgressLine::show(const actors::Progress& progress) {
  if (!progress.note.empty() && progress.note != note_) {
    clear();
    std::fprintf(stderr, "%s\n", progress.note.c_str());
    note_ = progress.note;
  }
  const auto text = progress_text(progress);
  if (terminal_) {
    if (text != last_) std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
    drawn_ = true;
    last_ = text;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (progress.phase == phase_ && printed_ && now - *printed_ < std::chrono::seconds(5)) return;
  if (text != last_) std::fprintf(stderr, "%s\n", text.c_str());
  last_ = text;
  phase_ = progress.phase;
  printed_ = now;
}

void ProgressLine::clear() {
  if (terminal_ && drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
  last_.clear();
}

}  // namespace leafcutter::commands
