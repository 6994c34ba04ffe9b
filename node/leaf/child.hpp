// A running program of the leaf, watched by its event loop: what it writes, and how it ends.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "node/leaf/process.hpp"

namespace leafcutter::node {

/// Everything runs on the loop's thread.
class Child {
 public:
  enum class Stream { output, errors };
  using OnBytes = std::function<void(Stream, std::string_view)>;
  using OnEnd = std::function<void(const Ending&)>;  ///< once, when no process of it is left and its output is read

  static base::Expected<std::shared_ptr<Child>> start(boost::asio::io_context& io, const Spawn& spawn, OnBytes on_bytes,
                                                      OnEnd on_end);
  ~Child();

  pid_t pid() const;
  pid_t program();  ///< see Process::program
  const StartEvidence& start_evidence() const;
  void kill();
  base::UniqueFd take_listener();

 private:
  struct State;
  explicit Child(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

struct CommandResult {
  Ending ending;
  std::string output, errors;  ///< at most `command_output_limit` bytes each
  bool timed_out = false;
};
inline constexpr std::size_t command_output_limit = 64 * 1024;

/// Runs a command to its end, or kills it at the deadline. A command that cannot be started ends with an error text.
void run_command(boost::asio::io_context& io, const Spawn& spawn, std::chrono::nanoseconds within,
                 std::function<void(CommandResult)> done);

/// "exit status 3: <last line of standard error>", "killed by signal 9", "nothing within 5s".
std::string describe(const CommandResult& result);

}  // namespace leafcutter::node
