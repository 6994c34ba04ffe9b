// Leafcutter as a user sees it: programs that are started, watched and interrupted, folders that are gone afterwards,
// and a look at what a run leaves behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"

namespace acceptance {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// How many times longer than usual things may take in this build; the time-outs below are those of an ordinary one.
inline constexpr int slower = LEAFCUTTER_TEST_PATIENCE;

/// The checkout and the build folder; LEAFCUTTER_CHECKOUT names another place where the same checkout can be seen.
fs::path source_folder();
fs::path build_folder();

/// A folder in the temporary one, removed at the end. Its path is in the command line of everything started from it, by
/// which left-over processes are recognized.
class Folder {
 public:
  const fs::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }

  /// A copy of a ready scenario, with `from` replaced by `to` in its text; returns its folder.
  std::string copy_scenario(const std::string& name, const std::string& from = "", const std::string& to = "") const;

 private:
  leafcutter::tests::Folder folder_;
  fs::path path_ = folder_.path();
};

/// Replaces `from` by `to` wherever the file says it; throws when it does not.
void replace_in(const fs::path& file, const std::string& from, const std::string& to);

struct Outcome {
  int exit = -1;  ///< 128 + signal when killed
  std::string out, err;
};

class Program {
 public:
  /// Starts it in a process group of its own, as a shell does.
  Program(const std::vector<std::string>& command, const fs::path& folder);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  /// Kills what is left of the group.
  ~Program();

  pid_t pid() const { return pid_; }

  /// Reads until standard error holds `text`; fails the test and returns false when it ends or the time is over before
  /// that.
  bool wait_for_error_text(const std::string& text, std::chrono::seconds patience);

  /// The same of standard output, from `from` on; where the text ends, or nothing.
  std::optional<std::size_t> wait_for_output_text(const std::string& text, std::chrono::seconds patience,
                                                  std::size_t from = 0);

  /// What it has written to standard output so far.
  const std::string& output_text() const { return outcome_.out; }
  /// What it has written to standard error so far.
  const std::string& error_text() const { return outcome_.err; }

  /// To the whole group, as a terminal does it.
  void signal_group(int number) const;
  /// To this process alone.
  void signal_alone(int number) const;

  /// Until it ends; fails the test (and kills it) when the time is over.
  Outcome wait(std::chrono::seconds patience);

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  bool reaped_ = false;
  Outcome outcome_;
};

/// `leafcutter ARGUMENTS...` in `folder`.
Outcome leafcutter(const std::vector<std::string>& arguments, const fs::path& folder,
                   std::chrono::seconds patience = std::chrono::seconds(240));
std::vector<std::string> leafcutter_command(std::vector<std::string> arguments);

/// The document of `run --format json`; fails the test when there is none.
Json document(const Outcome& outcome);

/// A file as it is; empty when it cannot be read.
std::string content(const fs::path& file);

/// Of lines that are one JSON object each: those of a type. Fails the test at any other line.
std::vector<Json> records(const std::string& text, const std::string& type);

/// A child of `parent` with `word` in its command line; -1 when there is none after a while.
pid_t child_with(pid_t parent, const std::string& word, std::chrono::seconds patience = std::chrono::seconds(10));

/// Processes and mounts that speak of `marker`, described; waits a while for them to go.
std::string left_behind(const std::string& marker, std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace acceptance
