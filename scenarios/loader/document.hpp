// A YAML document as the loaders read it: every node with its place, nothing interpreted. What YAML allows and a
// scenario does not (aliases, tags, several documents, keys given twice) is refused here, for the whole document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocols/event.hpp"

namespace leafcutter::scenarios::loading {

using protocols::Value;

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;       ///< scalar
  bool plain = false;     ///< scalar without quotes: numbers, true, 2xx and /regex/ have their meaning
  bool reported = false;  ///< could not be read at all, which has been said already
  int line = 0;
  int column = 0;
  std::vector<Node> keys;   ///< map: scalars, in document order
  std::vector<Node> items;  ///< map: the value of each key; list: its elements

  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::list; }
  bool is_scalar() const { return kind == Kind::scalar; }

  /// The value of a key of a map, or nullptr (also when this is no map).
  const Node* find(std::string_view key) const;
};

/// Mistakes and doubts about a document, in the order of their places.
class Notes {
 public:
  explicit Notes(std::string file) : file_(std::move(file)) {}

  void error(const Node& at, const std::string& message) { add(errors_, at.line, at.column, message); }
  void error(int line, int column, const std::string& message) { add(errors_, line, column, message); }
  void warning(const Node& at, const std::string& message) { add(warnings_, at.line, at.column, message); }
  base::Place place(const Node& at) const { return {file_, at.line, at.column}; }

  std::vector<base::Error> errors() const { return sorted(errors_); }
  std::vector<base::Error> warnings() const { return sorted(warnings_); }
  bool any_error() const { return !errors_.empty(); }

 private:
  void add(std::vector<base::Error>& list, int line, int column, const std::string& message);
  static std::vector<base::Error> sorted(std::vector<base::Error> list);

  std::string file_;
  std::vector<base::Error> errors_, warnings_;
};

/// What kind of document it is.
struct DocumentRules {
  std::string noun = "scenario";          ///< as messages call it
  std::string opening = "leafcutter: 1";  ///< how one begins
  bool aliases = false;                   ///< *name stands for a copy of what &name was put before
};

/// The root of the document, or nothing (and errors in `notes`) when it cannot be read as a tree at all.
std::optional<Node> parse_document(std::string_view text, Notes& notes, const DocumentRules& rules = {});

/// What was found, for messages: "\"x\"", "a list", "a mapping", "nothing".
std::string describe(const Node& node);

/// Numbers, true, false and null where they are written without quotes; text otherwise.
Value to_value(const Node& node);

/// JSON in document order. A plain `${name}` goes in as it is, so that a number stays a number.
std::string to_json_text(const Node& node);

/// The node in YAML's flow style, on one line.
std::string flow_text(const Node& node);

/// A whole number without sign.
std::optional<std::uint64_t> whole_number(const Node& node);

}  // namespace leafcutter::scenarios::loading
