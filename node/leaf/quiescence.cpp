#include "node/leaf/quiescence.hpp"

namespace leafcutter::node {

using std::chrono::steady_clock;

Quiescence::Quiescence(LeafContext& context, Services& services)
    : context_(context), services_(services), silence_(steady_clock::now(), context.activity.last()) {}

Silence Quiescence::silence() const {
  const std::lock_guard lock(mutex_);
  return silence_;
}

bool Quiescence::wait(std::chrono::nanoseconds quiet, std::chrono::nanoseconds within, std::vector<std::string>& busy) {
  const auto is_busy = [&] {
    busy = context_.activity.busy();
    for (const auto& name : services_.moving()) busy.push_back("start " + name);
    for (const auto& link : context_.on_its_way()) {
      busy.push_back("bytes on their way on " + link);
      context_.activity.touch();  // and when they have arrived, whoever they are for has the whole time to act
    }
    return !busy.empty();
  };
  QuietWait wait(quiet, within, silence());
  for (;;) {
    const auto answer =
        wait.look(steady_clock::now(), context_.activity.last(), is_busy, [] { return anything_runs(); });
    if (answer == QuietWait::Answer::late) is_busy();  // what it was late with
    if (answer != QuietWait::Answer::wait) {
      const std::lock_guard lock(mutex_);
      silence_ = wait.silence();
      return answer == QuietWait::Answer::quiet;
    }
    services_.wait_change(wait.next());
  }
}

}  // namespace leafcutter::node
