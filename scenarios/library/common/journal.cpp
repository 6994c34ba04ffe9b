// A client of a database, as a service: remembers what the database acknowledged, so that it can be held to it.
//
//   journal --port 7001 --data FOLDER --says OK -- redis-cli -h redis SET {id} {id}
//     POST /write {id} runs the command with {id} filled in. When it exits 0 and prints what --says says, the id goes
//     into FOLDER/acknowledged.log and the answer is 201; otherwise the answer is 503 and nothing is known of that id.
//   journal --check FOLDER -- redis-cli -h redis GET {id}
//     runs the command for every acknowledged id; each time it must print just that id.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "../common/arguments.hpp"
#include "../common/http.hpp"
#include "../common/line_log.hpp"

using library::Json;
using library::Request;
using library::Response;

namespace {

struct Outcome {
  int exit = -1;  ///< -1: killed, or out of time
  std::string output;
};

std::string filled_in(std::string word, const std::string& id) {
  for (auto at = word.find("{id}"); at != std::string::npos; at = word.find("{id}", at + id.size()))
    word.replace(at, 4, id);
  return word;
}

/// Runs a command; standard output without its last newline.
Outcome run(const std::vector<std::string>& command, const std::string& id, std::chrono::milliseconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  const library::Descriptor reader(ends[0]);
  std::vector<std::string> words;
  for (const auto& word : command) words.push_back(filled_in(word, id));
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const auto child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  if (child < 0) throw std::runtime_error("fork failed");

  Outcome outcome;
  const auto deadline = library::Clock::now() + patience;
  char buffer[4096];
  ssize_t n = 1;
  while (n > 0 && library::detail::wait_for(reader.get(), POLLIN, deadline)) {
    n = ::read(reader.get(), buffer, sizeof buffer);
    if (n > 0) outcome.output.append(buffer, static_cast<std::size_t>(n));
  }
  if (n > 0) ::kill(child, SIGKILL);  // out of time
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) outcome.exit = WEXITSTATUS(status);
  if (!outcome.output.empty() && outcome.output.back() == '\n') outcome.output.pop_back();
  return outcome;
}

int check(const std::string& folder, const std::vector<std::string>& command) {
  const library::LineLog acknowledged(folder + "/acknowledged.log");
  int missing = 0;
  for (const auto& id : acknowledged.lines()) {
    const auto outcome = run(command, id, std::chrono::seconds(5));
    if (outcome.exit != 0) {
      std::printf("%s: the command that reads it back exits with %d\n", id.c_str(), outcome.exit);
      return 2;
    }
    if (outcome.output == id) continue;
    std::printf("%s was acknowledged and is gone: read back \"%s\"\n", id.c_str(), outcome.output.c_str());
    ++missing;
  }
  std::printf("%zu acknowledged, %d missing\n", acknowledged.lines().size(), missing);
  return missing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const library::Arguments arguments(argc, argv);
  if (arguments.rest().empty()) throw std::runtime_error("a command is missing after --");
  if (arguments.has("check")) return check(arguments.at("check"), arguments.rest());
  library::LineLog acknowledged(arguments.at("data") + "/acknowledged.log");
  const std::string says = arguments.has("says") ? arguments.at("says") : "";
  library::Server(arguments.number("port")).serve([&](const Request& request) -> Response {
    if (request.method == "GET" && request.path == "/health") return {200, {{"ok", true}}};
    if (request.method != "POST" || request.path != "/write") return {404, {{"error", "no such thing"}}};
    const std::string id = Json::parse(request.body).at("id");
    const auto outcome = run(arguments.rest(), id, std::chrono::seconds(4));
    if (outcome.exit != 0 || outcome.output != says)
      return {503, {{"id", id}, {"error", "not acknowledged"}, {"exit", outcome.exit}, {"output", outcome.output}}};
    if (!acknowledged.append(id)) return {500, {{"id", id}, {"error", "cannot note it"}}};
    return {201, {{"id", id}, {"state", "acknowledged"}}};
  });
} catch (const std::exception& problem) {
  std::fprintf(stderr, "journal: %s\n", problem.what());
  return 2;
}
