// Real programs as peers of a link: started in a folder of their own, asked, and ended with the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace leafcutter::node::proxy {

using Command = std::vector<std::string>;

/// A folder that is gone at the end. Programs that refuse to be root run as the one who owns it.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

enum class User {
  same,
  ordinary,  ///< nobody, when the test is root's
};

/// What a program said (standard output and error) and how it ended; 128 + the signal that ended it, -1 when it did not
/// end in time.
struct Said {
  int exit = -1;
  std::string text;
};

/// Runs it to its end, 50 s at most.
Said run(const Scratch& scratch, const Command& command, User user = User::same);

/// A program that serves until it is destroyed.
class Server {
 public:
  /// Fails the test when nothing accepts at 127.0.0.1:port within 30 s, with what the program said.
  Server(const Scratch& scratch, const Command& command, std::uint16_t port, User user = User::same);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  pid_t pid_;
};

}  // namespace leafcutter::node::proxy
