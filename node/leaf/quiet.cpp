#include "node/leaf/quiet.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"

namespace leafcutter::node {

namespace {

using std::chrono::nanoseconds;

/// What a timer is late by on a host that has a processor to spare is far less.
constexpr auto latest_on_time = quiet_tick + quiet_tick / 2;

bool is_process_id(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// The state letter of /proc/.../stat follows the name in parentheses, which may hold anything.
bool is_runnable(const std::filesystem::path& thread) {
  const auto text = base::read_file((thread / "stat").string());
  if (!text) return false;  // gone since the folder was listed
  const auto end = text->rfind(')');
  return end != std::string::npos && end + 2 < text->size() && (*text)[end + 2] == 'R';
}

}  // namespace

nanoseconds FairTime::tick(Instant now) {
  const nanoseconds passed = now - last_;
  const auto counted = passed <= latest_on_time ? passed : nanoseconds(quiet_tick);
  last_ = now;
  spent_ += counted;
  return counted;
}

Silence::Silence(Instant now, Instant moved)
    : time_(now), moved_(moved), lasted_(std::clamp<nanoseconds>(now - moved, nanoseconds(0), quiet_tick)) {}

bool Silence::look(Instant now, Instant moved) {
  const auto counted = time_.tick(now);
  const bool did_move = moved != moved_;
  lasted_ = did_move ? std::clamp<nanoseconds>(now - moved, nanoseconds(0), counted) : lasted_ + counted;
  moved_ = moved;
  return did_move;
}

QuietWait::QuietWait(nanoseconds quiet, nanoseconds within, Silence before)
    : quiet_(quiet), silence_(before), until_(before.counted() + within) {}

QuietWait::Answer QuietWait::look(Instant now, Instant moved, const Look& busy, const Look& at_work) {
  if (silence_.look(now, moved)) at_work_since_ = {};
  const bool over = silence_.counted() >= until_;
  next_ = now + quiet_tick;
  if (silence_.lasted() < quiet_) {
    // What is only at work does not make it late: it may be so for ever.
    if (over) return at_work_since_ != Instant{} && !busy() ? Answer::quiet : Answer::late;
    next_ = now + std::min<Instant::duration>(quiet_ - silence_.lasted(), quiet_tick);
    return Answer::wait;
  }
  if (busy()) return over ? Answer::late : Answer::wait;
  if (over || (at_work_since_ != Instant{} && now - at_work_since_ >= longest_at_work) || !at_work())
    return Answer::quiet;
  if (at_work_since_ == Instant{}) at_work_since_ = now;
  silence_.broken();
  return Answer::wait;
}

bool anything_runs(const std::string& proc) {
  namespace fs = std::filesystem;
  const auto own = std::to_string(::gettid());
  std::error_code error;
  for (fs::directory_iterator process(proc, error), end; !error && process != end; process.increment(error)) {
    if (!is_process_id(process->path().filename().string())) continue;
    std::error_code gone;
    for (fs::directory_iterator thread(process->path() / "task", gone), last; !gone && thread != last;
         thread.increment(gone))
      if (thread->path().filename().string() != own && is_runnable(thread->path())) return true;
  }
  return false;
}

}  // namespace leafcutter::node
