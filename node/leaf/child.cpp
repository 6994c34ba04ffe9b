#include "node/leaf/child.hpp"

#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

#include "base/text.hpp"
#include "node/leaf/text.hpp"

namespace leafcutter::node {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

struct Child::State : std::enable_shared_from_this<Child::State> {
  State(asio::io_context& io, Process started, OnBytes bytes, OnEnd end)
      : process(std::move(started)),
        handle(io),
        output(io),
        errors(io),
        on_bytes(std::move(bytes)),
        on_end(std::move(end)) {}

  void watch() {
    handle.assign(::dup(process.handle()));
    output.assign(process.output().release());
    errors.assign(process.errors().release());
    follow(output, Stream::output);
    follow(errors, Stream::errors);
    handle.async_wait(Descriptor::wait_read, [self = shared_from_this()](const auto& error) {
      if (!error) self->finish();
    });
  }

  void follow(Descriptor& from, Stream stream) {
    from.async_wait(Descriptor::wait_read, [self = shared_from_this(), &from, stream](const auto& error) {
      if (!error && self->read_some(from, stream)) self->follow(from, stream);
    });
  }

  /// Reads what is there, but no more than a share, so that a chatty program does not starve the loop. False: the end.
  bool read_some(Descriptor& from, Stream stream, int reads = 16) {
    std::array<char, 16384> buffer;
    for (int i = 0; i < reads; ++i) {
      const auto n = ::read(from.native_handle(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      if (n == 0) return false;
      on_bytes(stream, {buffer.data(), static_cast<std::size_t>(n)});
    }
    return true;
  }

  void finish() {
    // Every writer is gone; a pipe holds at most a megabyte.
    constexpr int whole_pipe = 256;
    if (output.is_open()) read_some(output, Stream::output, whole_pipe);
    if (errors.is_open()) read_some(errors, Stream::errors, whole_pipe);
    boost::system::error_code ignored;
    output.close(ignored);
    errors.close(ignored);
    handle.close(ignored);
    const auto ending = process.reap();
    const auto end = std::move(on_end);
    on_bytes = nullptr;
    on_end = nullptr;
    end(ending);
  }

  Process process;
  Descriptor handle, output, errors;
  OnBytes on_bytes;
  OnEnd on_end;
};

Child::Child(std::shared_ptr<State> state) : state_(std::move(state)) {}
Child::~Child() = default;

base::Expected<std::shared_ptr<Child>> Child::start(asio::io_context& io, const Spawn& spawn, OnBytes on_bytes,
                                                    OnEnd on_end) {
  auto process = Process::start(spawn);
  if (!process) return process.error();
  auto state = std::make_shared<State>(io, std::move(*process), std::move(on_bytes), std::move(on_end));
  state->watch();
  return std::shared_ptr<Child>(new Child(std::move(state)));
}

pid_t Child::pid() const { return state_->process.pid(); }
pid_t Child::program() { return state_->process.program(); }
const StartEvidence& Child::start_evidence() const { return state_->process.start_evidence(); }
void Child::kill() { state_->process.kill(); }
base::UniqueFd Child::take_listener() { return std::move(state_->process.listener()); }

namespace {

struct CommandRun {
  explicit CommandRun(asio::io_context& io) : deadline(io) {}
  CommandResult result;
  asio::steady_timer deadline;
  std::shared_ptr<Child> child;
  std::shared_ptr<void> supervisor;
  std::function<void(CommandResult)> done;
};

void append_bounded(std::string& to, std::string_view bytes) {
  to.append(bytes.substr(0, command_output_limit - std::min(to.size(), command_output_limit)));
}

}  // namespace

void run_command(asio::io_context& io, const Spawn& spawn, std::chrono::nanoseconds within,
                 std::function<void(CommandResult)> done) {
  auto run = std::make_shared<CommandRun>(io);
  run->done = std::move(done);
  auto started = Child::start(
      io, spawn,
      [run](Child::Stream stream, std::string_view bytes) {
        append_bounded(stream == Child::Stream::output ? run->result.output : run->result.errors, bytes);
      },
      [run](const Ending& ending) {
        run->deadline.cancel();
        run->child.reset();
        run->supervisor.reset();
        run->result.ending = ending;
        run->done(std::move(run->result));
      });
  if (!started) {
    run->result.ending.status = 127;
    run->result.ending.error = started.error().text();
    asio::post(io, [run] { run->done(std::move(run->result)); });
    return;
  }
  run->child = std::move(*started);
  if (spawn.supervise)
    if (auto listener = run->child->take_listener()) run->supervisor = spawn.supervise(std::move(listener));
  run->deadline.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(within));
  run->deadline.async_wait([run](const auto& error) {
    if (error || !run->child) return;
    run->result.timed_out = true;
    run->child->kill();
  });
}

std::string describe(const CommandResult& result) {
  if (!result.ending.error.empty()) return result.ending.error;
  auto text = result.timed_out ? std::string("did not end in time and was killed") : describe(result.ending);
  if (const auto line = last_line(result.errors); !line.empty()) text += ": " + line;
  return text;
}

}  // namespace leafcutter::node
