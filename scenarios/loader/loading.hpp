// What the parts of the loader share: the scenario as far as it is built, and how names in it are looked up. Every part
// reads nodes that may be malformed (the structure has been checked and reported): what is malformed is left out.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scenarios/event_kinds.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/loader/document.hpp"
#include "scenarios/matcher_text.hpp"

namespace leafcutter::scenarios::loading {

struct Loading {
  const Node& document;
  const LoadOptions& options;
  Notes& notes;
  Scenario scenario;
  bool expects_something = false;  ///< some step has an `expect`
  std::set<std::string> reached;   ///< "service:port" that the workload dials

  /// Line and column of byte `at` of a scalar's text; its beginning where the text is not written as it is (escapes,
  /// several lines).
  std::pair<int, int> place_within(const Node& node, std::size_t at) const;
  /// A plain scalar ends where YAML sees a comment, and one follows this.
  bool comment_follows(const Node& node) const;
};

/// Which `${...}` a string may use besides `${scenario}` and every service's host, port and data.
struct Scope {
  const Service* own = nullptr;     ///< its `data` and `port`
  std::set<std::string> variables;  ///< loop variables and saved ones
};

void load_services(Loading& loading);  ///< also sorts them by `needs` and applies the variant
void load_links(Loading& loading);
void load_egress(Loading& loading);  ///< after the links
void load_workload(Loading& loading);
void load_properties(Loading& loading);
void load_explore(Loading& loading);

// --- values of nodes that may be malformed or missing ---
std::string text_of(const Node* node, const std::string& preset = {});
std::vector<std::string> texts_of(const Node* node);
nanoseconds duration_of(const Node* node, nanoseconds preset);
std::uint64_t number_of(const Node* node, std::uint64_t preset);

// --- names ---
/// "; did you mean "x"?", or the known names when there are few.
std::string suggestion(const std::string& word, const std::vector<std::string>& known);
std::vector<std::string> service_names(const Scenario& scenario);
/// Every `${...}` in the text must be known. Reports at `at`.
void check_references(Loading& loading, const Node& at, const std::string& text, const Scope& scope);
/// The same for every scalar below a node.
void check_references_below(Loading& loading, const Node* node, const Scope& scope);

/// "service", "service:port" and what follows from the first slash. Reports what does not exist; then `service` is
/// empty.
struct Target {
  std::string service, port, path;
};
Target resolve_target(Loading& loading, const Node& at, bool http);

/// A command: run[0] resolved against the scenario's folder, its program checked, its references checked.
std::vector<std::string> load_command(Loading& loading, const Node* node, const Scope& scope);

/// One end of "a -> b:port". Reports; empty on error.
std::vector<Link> resolve_links(Loading& loading, const Node& at);

// --- matchers ---
/// Attribute paths of `node` (but `except`) as matchers; each must exist in `kind`.
std::vector<Matcher> load_matchers(Loading& loading, const Node& node, const EventKind& kind,
                                   const std::vector<std::string>& except = {});
Pattern load_pattern(Loading& loading, const Node& node);

/// What an answer has: "request", "exchange" or "command".
const EventKind& answer_kind(std::string_view name);

}  // namespace leafcutter::scenarios::loading
