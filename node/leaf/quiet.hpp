// When a leaf is quiet. On a starved host a service may do nothing for a while only because it gets no processor; time
// is therefore counted as far as this process itself is let run, and nothing is quiet while a thread of the leaf waits
// to run. Values: time and what is seen are passed in.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace leafcutter::node {

using Instant = std::chrono::steady_clock::time_point;

/// How often whoever waits looks at the clock.
inline constexpr std::chrono::milliseconds quiet_tick{5};

/// For how long threads that run and move nothing are waited for: one may spin for ever.
inline constexpr std::chrono::seconds longest_at_work{2};

/// Counts the time between two ticks in full when the second one came about on time, and as one tick when it was late:
/// for the rest the host was busy with others, and so were the services.
class FairTime {
 public:
  explicit FairTime(Instant now) : last_(now) {}

  /// What is counted since the last tick.
  std::chrono::nanoseconds tick(Instant now);
  std::chrono::nanoseconds spent() const { return spent_; }

 private:
  Instant last_;
  std::chrono::nanoseconds spent_{0};
};

/// How long nothing has moved, in fair time. It goes on from one wait to the next.
class Silence {
 public:
  /// Nobody counted what lies before `now`: it is good for one tick.
  Silence(Instant now, Instant moved);

  /// `moved`: when something last did. True: since the last look.
  bool look(Instant now, Instant moved);
  void broken() { lasted_ = std::chrono::nanoseconds(0); }

  std::chrono::nanoseconds lasted() const { return lasted_; }
  std::chrono::nanoseconds counted() const { return time_.spent(); }  ///< whatever moved meanwhile

 private:
  FairTime time_;
  Instant moved_;
  std::chrono::nanoseconds lasted_;
};

/// One wait for quiet: nothing has moved for `quiet`, nothing is under way and nothing is at work.
class QuietWait {
 public:
  enum class Answer {
    wait,   ///< look again at `next()` at the latest
    quiet,  ///< it is
    late,   ///< it was not within the time there was
  };
  using Look = std::function<bool()>;

  /// Both in fair time. `before`: how long it has been silent already.
  QuietWait(std::chrono::nanoseconds quiet, std::chrono::nanoseconds within, Silence before);

  /// `moved`: when something last did. `busy`: whether anything is under way, asked when it would be quiet otherwise or
  /// the time is over. `at_work`: whether a thread of the leaf runs or waits for a processor; it costs most and is
  /// asked last: once for each time that it would be quiet.
  Answer look(Instant now, Instant moved, const Look& busy, const Look& at_work);

  Instant next() const { return next_; }
  const Silence& silence() const { return silence_; }

 private:
  std::chrono::nanoseconds quiet_;
  Silence silence_;
  std::chrono::nanoseconds until_;  ///< of what the silence has counted
  Instant next_{};
  Instant at_work_since_{};  ///< first seen since the last movement; the epoch: not
};

/// Looks at every thread of the leaf, which has a /proc of its own, but the calling one: state R.
bool anything_runs(const std::string& proc = "/proc");

}  // namespace leafcutter::node
