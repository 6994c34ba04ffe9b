#include "commands/proxy_session.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <utility>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "commands/output.hpp"
#include "node/runs/loader.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

namespace runs = node::runs;
using runs::Time;

class SessionLoop {
 public:
  explicit SessionLoop(const ProxySession& session) : s_(session) {}

  int run() {
    const auto& runner = s_.runner;
    if (s_.journal != nullptr)
      s_.journal->begin(runs::run_started_record(runner.run(), {s_.file, runner.seed(), runner.endpoints()}));
    seen_ = s_.view.started(runner, s_.file) && seen_;
    announce_phase(clock());
    auto end = ProxyEnd::completed;
    auto tick = clock();
    while (seen_ && status_.ok()) {
      const auto now = clock();
      step(now);
      if (runner.point().finished) break;
      if (now >= tick) {
        seen_ = s_.view.progress(s_.runner, now) && seen_;
        if (s_.journal != nullptr) s_.journal->flush();
        tick = now + s_.view.interval();
      }
      wait_until(std::min({tick, runner.deadline().value_or(tick), edit_ ? edit_->until : tick}));
      if (s_.interrupts.seen()) {
        end = s_.interrupts.number() == SIGTERM ? ProxyEnd::terminated : ProxyEnd::interrupted;
        break;
      }
      if (s_.watch != nullptr && s_.watch->changed()) reload(clock());
      if (edit_ && (s_.names.known() || clock() >= edit_->until)) carry_out_edit(clock());
    }
    return finish(seen_ && status_.ok() ? end : ProxyEnd::failed);
  }

 private:
  /// A new document that waits for the addresses of the names in it, while the old one goes on.
  struct Edit {
    runs::Run run;
    Time until;
  };

  static Time clock() { return std::chrono::steady_clock::now(); }

  void record(const std::string& line) {
    if (s_.journal != nullptr) s_.journal->append(line);
  }

  void announce_phase(Time now) {
    const auto& runner = s_.runner;
    record(runs::phase_started_record(runner.run(), runner.point(), now, s_.start, runner.started()));
    seen_ = seen_ && s_.view.phase(runner, now);
  }

  void step(Time now) {
    const auto changed = s_.runner.advance(now);
    if (!changed)
      status_ = changed.error();
    else if (*changed && !s_.runner.point().finished)
      announce_phase(now);
    for (const auto& one : s_.runner.begun()) {
      record(runs::fault_begun_record(one.proxy, one.fault, one.after, runner_phase(), now - s_.start));
      seen_ = s_.view.begun(s_.runner, one, now) && seen_;
    }
  }

  const std::string& runner_phase() const { return s_.runner.run().phases[s_.runner.point().phase].name; }

  void wait_until(Time deadline) {
    std::array<pollfd, 4> items{
        {{s_.interrupts.fd(), POLLIN, 0}, {s_.runner.events(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}}};
    if (s_.watch != nullptr) items[2].fd = s_.watch->fd();
    if (edit_) items[3].fd = s_.names.fd();
    const auto left = std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(deadline - clock()));
    const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000), left.count() % 1'000'000'000};
    if (::ppoll(items.data(), items.size(), &timeout, nullptr) > 0 && items[0].revents != 0)
      s_.interrupts.wait(std::chrono::milliseconds(0));
  }

  /// A bad edit changes nothing.
  void reload(Time now) {
    const auto text = base::read_file(s_.file);
    const auto digest = base::sha256(text ? *text : "");
    // A file is often touched more than once for one edit.
    const auto& known = edit_ ? edit_->run.digest : refused_.empty() ? s_.runner.run().digest : refused_;
    if (digest == known) return;
    refused_.clear();
    edit_.reset();
    if (digest == s_.runner.run().digest) return;
    auto loaded = text ? runs::load_run_text(*text, s_.file) : runs::load_run_file(s_.file);
    if (!loaded.run) {
      refused_ = digest;
      return refuse(loaded.errors, now);
    }
    for (const auto& warning : loaded.warnings) print_warning(warning);
    s_.names.ask(*loaded.run);
    edit_ = {std::move(*loaded.run), now + runs::ListenNames::patience};
  }

  void carry_out_edit(Time now) {
    auto next = std::move(edit_->run);
    edit_.reset();
    const auto digest = next.digest;
    const auto settled = s_.names.settle(next);
    const auto changed = settled ? s_.runner.replace(std::move(next), now) : settled.error();
    if (!changed) {
      refused_ = digest;
      return refuse({changed.error()}, now);
    }
    record(runs::reloaded_record(s_.runner.run(), s_.runner.endpoints(), now - s_.start, *changed));
    seen_ = s_.view.reloaded(s_.runner, now, *changed) && seen_;
    announce_phase(now);
  }

  void refuse(const std::vector<base::Error>& errors, Time now) {
    record(runs::reload_failed_record(errors, now - s_.start));
    seen_ = s_.view.reload_failed(errors, now) && seen_;
  }

  int finish(ProxyEnd end) {
    s_.runner.end();
    const auto now = clock();
    record(run_completed_record(s_.runner, now, s_.start, end));
    const bool shown = seen_ && s_.view.ended(s_.runner, now, end);
    int code = end == ProxyEnd::interrupted ? scenarios::exit_codes::interrupted : 0;
    if (!status_) code = fail(status_.error());
    if (!shown) code = scenarios::exit_codes::inconclusive;
    if (s_.journal != nullptr)
      if (const auto closed = s_.journal->close(); !closed) code = fail(closed.error());
    return code;
  }

  const ProxySession& s_;
  bool seen_ = true;
  std::string refused_;  ///< the digest of the edit that was refused last; empty: none since the last good one
  std::optional<Edit> edit_;
  base::Status status_ = base::ok();
};

}  // namespace

int run_proxy_session(const ProxySession& session) { return SessionLoop(session).run(); }

}  // namespace leafcutter::commands
