#include "node/runs/recording.hpp"

#include <cmath>
#include <map>

#include "base/text.hpp"
#include "node/runs/records.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node::runs {
namespace {

using protocols::Value;

/// Reads one line after the other; a record that has not what it should throws nlohmann's exception.
class RecordingReader {
 public:
  void take(const Value& record) {
    const auto type = record.at("type").get<std::string>();
    if (!started_) {
      if (type != "run-started") throw std::runtime_error("a journal begins with run-started");
      start(record);
    } else if (type == "run-completed") {
      recording_.whole = true;
      recording_.dropped = record.value("dropped_records", std::uint64_t{0});
    } else if (type == "config-reloaded") {
      recording_.reloaded = true;
    } else if (!recording_.reloaded) {
      decision(type, record);
    }
  }

  bool started() const { return started_; }

  Recording finish() {
    recording_.decisions = decisions_;
    return std::move(recording_);
  }

 private:
  void start(const Value& record) {
    if (record.at("journal_version").get<int>() != journal_version)
      throw std::runtime_error("this program reads journals of version " + std::to_string(journal_version));
    started_ = true;
    recording_.seed = record.at("seed").get<std::uint64_t>();
    recording_.digest = record.at("config_sha256").get<std::string>();
    for (const auto& one : record.at("endpoints"))
      datagrams_[one.at("proxy").get<std::string>()] = one.at("listen").get<std::string>().starts_with("udp://");
  }

  void decision(const std::string& type, const Value& record) {
    if (type != "accepted" && type != "struck" && type != "passed-over") return;
    const auto link = record.at("link").get<std::string>();
    const auto connection = record.at("connection").get<std::uint64_t>();
    if (type == "accepted") return decisions_->know(link, connection);
    const auto direction =
        record.at("direction") == "to-client" ? proxy::Direction::to_client : proxy::Direction::to_upstream;
    auto& of = decisions_->of({link, connection, direction, record.at("fault").get<std::string>(),
                               record.at("activation").get<std::uint64_t>()},
                              datagrams_[link]);
    if (type == "passed-over") return of.pass_over();
    const auto nanoseconds = record.value("delay_ms", 0.0) * 1e6;
    if (!(nanoseconds >= 0 && nanoseconds <= static_cast<double>(proxy::longest_fault_time.count())))
      throw std::runtime_error("delay_ms is no delay");
    of.strike({record.value("operation", std::uint64_t{0}), record.value("offset", std::uint64_t{0}),
               record.value("bytes", std::uint64_t{0}), proxy::Duration(std::llround(nanoseconds))});
  }

  Recording recording_;
  std::shared_ptr<proxy::Decisions> decisions_ = std::make_shared<proxy::Decisions>();
  std::map<std::string, bool> datagrams_;  ///< proxy -> whether it carries datagrams
  bool started_ = false;
};

}  // namespace

base::Expected<Recording> read_recording(const std::string& path) {
  const auto text = base::read_file(path);
  if (!text) return base::Error{base::ErrorCode::bad_input, text.error().message, {path, 0, 0}};
  return read_recording_text(*text, path);
}

base::Expected<Recording> read_recording_text(std::string_view text, const std::string& file) {
  RecordingReader reader;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const auto end = text.find('\n');
    // A last line without its end was cut off when the program was killed.
    if (end == std::string_view::npos) break;
    try {
      reader.take(Value::parse(text.substr(0, end)));
    } catch (const Value::exception& error) {
      const bool parsed = dynamic_cast<const Value::parse_error*>(&error) == nullptr;
      return base::Error{base::ErrorCode::bad_input,
                         std::string("this is no record of a journal: ") +
                             (parsed ? "a key is missing, or its value is of another kind" : "it is no JSON"),
                         {file, line, 1}};
    } catch (const std::exception& error) {
      return base::Error{
          base::ErrorCode::bad_input, std::string("this is no record of a journal: ") + error.what(), {file, line, 1}};
    }
    text.remove_prefix(end + 1);
  }
  if (!reader.started())
    return base::Error{base::ErrorCode::bad_input,
                       std::string(text.empty() ? "the journal is empty" : "not one line of the journal is whole") +
                           "; one begins with run-started",
                       {file, 1, 1}};
  return reader.finish();
}

}  // namespace leafcutter::node::runs
