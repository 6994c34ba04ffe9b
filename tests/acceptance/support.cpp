#include "support.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/checkout.hpp"

namespace acceptance {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000));
}

std::string link_target(const fs::path& path) {
  std::error_code code;
  return fs::read_symlink(path, code).string();
}

/// What in /proc speaks of `marker` now; the test itself does not count.
std::string traces_of(const std::string& marker) {
  std::string found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(name[0])) || name == std::to_string(::getpid())) continue;
    auto command = content(entry.path() / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    const auto said =
        command + " [" + link_target(entry.path() / "exe") + ", in " + link_target(entry.path() / "cwd") + "]";
    if (said.find(marker) != std::string::npos) found += "process " + name + ": " + said + "\n";
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);)
    if (line.find(marker) != std::string::npos) found += "mount: " + line + "\n";
  return found;
}

pid_t child_now(pid_t parent, const std::string& word) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
    const auto status = content(entry.path() / "status");
    if (status.find("\nPPid:\t" + std::to_string(parent) + "\n") == std::string::npos) continue;
    if (content(entry.path() / "cmdline").find(word) != std::string::npos)
      return static_cast<pid_t>(std::stol(entry.path().filename().string()));
  }
  return -1;
}

}  // namespace

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Json> records(const std::string& text, const std::string& type) {
  std::istringstream lines(text);
  std::vector<Json> found;
  for (std::string line; std::getline(lines, line);) {
    auto record = Json::parse(line, nullptr, false);
    EXPECT_TRUE(record.is_object()) << line;
    if (record.is_object() && record["type"] == type) found.push_back(std::move(record));
  }
  return found;
}

fs::path source_folder() { return leafcutter::tests::checkout(); }

fs::path build_folder() {
  const std::string built = LEAFCUTTER_BINARY_DIR, source = LEAFCUTTER_SOURCE_DIR;
  return built.rfind(source + "/", 0) == 0 ? source_folder() / built.substr(source.size() + 1) : fs::path(built);
}

std::string Folder::copy_scenario(const std::string& name, const std::string& from, const std::string& to) const {
  const auto target = path_ / name;
  fs::copy(build_folder() / "library" / name, target, fs::copy_options::recursive);
  if (!from.empty()) replace_in(target / "scenario.yaml", from, to);
  return target.string();
}

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  auto text = content(file);
  auto at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error(file.string() + " does not say \"" + from + "\"");
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  std::ofstream(file) << text;
}

Program::Program(const std::vector<std::string>& command, const fs::path& folder) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    // A shell starts what is to run in the background with SIGINT ignored, and the tests may have been started so.
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    if (::chdir(folder.c_str()) == 0) ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Program::~Program() {
  if (!reaped_) {
    signal_group(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_, err_})
    if (fd >= 0) ::close(fd);
}

bool Program::read_some(Clock::time_point deadline) {
  pollfd entries[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (::poll(entries, 2, milliseconds_until(deadline)) <= 0) return Clock::now() < deadline;
  char buffer[65536];
  const auto take = [&](int& fd, short events, std::string& text) {
    if (events == 0) return;
    const auto n = ::read(fd, buffer, sizeof buffer);
    if (n > 0) {
      text.append(buffer, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      ::close(fd);
      fd = -1;  // poll() passes over negative descriptors
    }
  };
  take(out_, entries[0].revents, outcome_.out);
  take(err_, entries[1].revents, outcome_.err);
  return out_ >= 0 || err_ >= 0;
}

bool Program::wait_for_error_text(const std::string& text, std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience * slower;
  while (outcome_.err.find(text) == std::string::npos) {
    if (read_some(deadline) && Clock::now() < deadline) continue;
    ADD_FAILURE() << "standard error never said \"" << text << "\":\n" << outcome_.err;
    return false;
  }
  return true;
}

std::optional<std::size_t> Program::wait_for_output_text(const std::string& text, std::chrono::seconds patience,
                                                         std::size_t from) {
  const auto deadline = Clock::now() + patience * slower;
  while (outcome_.out.find(text, from) == std::string::npos) {
    if (read_some(deadline) && Clock::now() < deadline) continue;
    ADD_FAILURE() << "standard output never said \"" << text << "\":\n" << outcome_.out << outcome_.err;
    return std::nullopt;
  }
  return outcome_.out.find(text, from) + text.size();
}

void Program::signal_group(int number) const { ::kill(-pid_, number); }
void Program::signal_alone(int number) const { ::kill(pid_, number); }

Outcome Program::wait(std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience * slower;
  while (read_some(deadline)) {
  }
  if (Clock::now() >= deadline) {
    ADD_FAILURE() << "not over after " << (patience * slower).count() << " s; standard error:\n" << outcome_.err;
    signal_group(SIGKILL);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  reaped_ = true;
  outcome_.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // In a sanitized build: of this program, or of a leaf, which is one more INFRA among many verdicts.
  EXPECT_EQ(outcome_.err.find("Sanitizer: "), std::string::npos) << outcome_.err;
  return outcome_;
}

std::vector<std::string> leafcutter_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (build_folder() / "leafcutter").string());
  return arguments;
}

Outcome leafcutter(const std::vector<std::string>& arguments, const fs::path& folder, std::chrono::seconds patience) {
  return Program(leafcutter_command(arguments), folder).wait(patience);
}

Json document(const Outcome& outcome) {
  auto json = Json::parse(outcome.out, nullptr, false);
  if (json.is_object()) return json;
  ADD_FAILURE() << "exit " << outcome.exit << "; no JSON document on standard output:\n"
                << outcome.out << "\nstandard error:\n"
                << outcome.err;
  return Json::object();
}

pid_t child_with(pid_t parent, const std::string& word, std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  auto found = child_now(parent, word);
  while (found < 0 && Clock::now() < deadline) {
    ::poll(nullptr, 0, 20);  // /proc cannot be waited for
    found = child_now(parent, word);
  }
  return found;
}

std::string left_behind(const std::string& marker, std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience * slower;
  auto found = traces_of(marker);
  while (!found.empty() && Clock::now() < deadline) {
    ::poll(nullptr, 0, 20);  // /proc cannot be waited for
    found = traces_of(marker);
  }
  return found;
}

}  // namespace acceptance
