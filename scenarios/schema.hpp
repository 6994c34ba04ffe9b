// The keys of a document, each defined once: its form, its limits, its default and what it means. The loader's checks,
// the JSON Schema and the reference page all read this table. The scenario's table is here; other rooms have their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leafcutter::scenarios {

inline constexpr int language_version = 1;

/// What a value looks like.
struct Form {
  enum class Kind {
    text,      ///< any scalar; at least `least` characters
    name,      ///< of a service, a port, a variant: letters, digits, '-' and '_'
    variable,  ///< a name that Lua can use, too
    integer,   ///< least..most
    number,    ///< from..to, whole or not
    boolean,
    duration,  ///< "300ms"; least..most nanoseconds
    regex,     ///< RE2
    lua,       ///< a Lua expression
    word,      ///< one of `words`
    pattern,   ///< text that matches words[0] (anchored RE2/ECMA); `noun`: what would do, with its article
    any,       ///< any value: a JSON body
    matchers,  ///< attribute path -> matcher
    list,      ///< of parts[0]; least..most elements
    map,       ///< names (or any text, see `free_keys`) -> parts[0]; at least `least` entries
    shape,     ///< a mapping with known keys
    either,    ///< one of `parts`, told apart by being a scalar, a list or a mapping
    tagged,    ///< one of `parts` (shapes); the value of their key `noun` says which: words[i] is parts[i]
  };
  Kind kind = Kind::text;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::string noun = {};  ///< word: what it names ("event kind"); shape: the shape's name
  std::vector<std::string> words = {};
  std::vector<Form> parts = {};
  Kind keys = Kind::name;  ///< map: text, name or variable
  double from = 0, to = 0;
  bool above = false;     ///< number: `from` itself is not allowed
  bool nullable = false;  ///< null says the same as leaving the key out
};

struct Key {
  std::string name;
  Form form;
  std::string about;
  bool required = false;
  std::string preset = {};                  ///< the default, as one would write it; empty: none
  std::vector<std::string> only_with = {};  ///< belongs to these of the shape's `one_of` keys; empty: to all
};

struct Shape {
  std::string name;   ///< as messages call it: "service"
  std::string title;  ///< heading of the reference page
  std::string about;
  std::vector<Key> keys;
  std::vector<std::string> one_of = {};   ///< exactly one of these keys must be there: it says what the mapping is
  std::vector<std::string> some_of = {};  ///< at least one of these
  std::string others = {};  ///< not empty: further keys are attribute paths with matchers; what they match

  const Key* key(std::string_view key_name) const;
  std::vector<std::string> key_names() const;
};

/// All keys of one kind of document.
struct Vocabulary {
  /// How messages call a place: "service "shop"", or "phases[0].proxies[1].faults[0].flow".
  enum class Places { words, paths };
  std::vector<Shape> shapes;  ///< in the order of the reference page; the first is the document
  Places places = Places::words;

  const Shape& shape(std::string_view name) const;
  /// For messages and the page: "a duration such as 5s", "a whole number from 1 to 65535", ...
  std::string expected(const Form& form) const;
};

/// The scenario's.
const Vocabulary& vocabulary();
const std::vector<Shape>& shapes();
const Shape& shape(std::string_view name);

/// A section with a table of keys for each shape (Markdown).
std::string shapes_page(const Vocabulary& vocabulary);

/// Regular expressions of names and variables, as anchored RE2/ECMA.
inline constexpr const char* name_pattern = "^[A-Za-z][A-Za-z0-9_-]{0,62}$";
inline constexpr const char* variable_pattern = "^[A-Za-z_][A-Za-z0-9_]{0,62}$";
bool is_name(std::string_view text);
bool is_variable(std::string_view text);

}  // namespace leafcutter::scenarios
