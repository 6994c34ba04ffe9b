#include "scenarios/loader/document.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "scenarios/matcher_text.hpp"

namespace leafcutter::scenarios::loading {
namespace {

constexpr std::size_t most_bytes = 1u << 20;
constexpr std::size_t deepest = 48;
constexpr std::size_t most_nodes = 200'000;

/// Thrown through yaml-cpp's parser to stop it; never leaves parse_document.
struct Refused {};

/// Builds the tree out of yaml-cpp's events: its own node type hides repeated keys and forgets how scalars were quoted.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(Notes& notes, const DocumentRules& rules) : notes_(notes), rules_(rules) {}

  std::optional<Node> root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    leaf(named(anchor, make(Node::Kind::null, mark)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (const auto known = anchored_.find(anchor); rules_.aliases && known != anchored_.end()) {
      count(mark, nodes_in(known->second));
      leaf(known->second);
      return;
    }
    notes_.error(mark.line + 1, mark.column + 1,
                 rules_.aliases ? "an alias (*name) inside of what it stands for; write the value out"
                                : "aliases (*name) are not supported in a " + rules_.noun + "; write the value out");
    auto node = make(Node::Kind::null, mark);
    node.reported = true;
    leaf(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = make(Node::Kind::scalar, mark);
    node.text = value;
    node.plain = tag == "?";
    check_tag(mark, tag);
    leaf(named(anchor, std::move(node)));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Node::Kind::list, mark), tag, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Node::Kind::map, mark), tag, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  Node make(Node::Kind kind, const YAML::Mark& mark) {
    count(mark, 1);
    Node node;
    node.kind = kind;
    node.line = std::max(mark.line, 0) + 1;
    node.column = std::max(mark.column, 0) + 1;
    return node;
  }

  void count(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > most_nodes) refuse(mark, "the document has more than " + std::to_string(most_nodes) + " values");
  }

  static std::size_t nodes_in(const Node& node) {
    std::size_t nodes = 1;
    for (const auto& item : node.items) nodes += nodes_in(item);
    return nodes;
  }

  /// Remembers what an alias may stand for.
  Node named(YAML::anchor_t anchor, Node node) {
    if (rules_.aliases && anchor != 0) {
      count({}, nodes_in(node));
      anchored_[anchor] = node;
    }
    return node;
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) {
    notes_.error(mark.line + 1, mark.column + 1, message);
    throw Refused{};
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      notes_.error(mark.line + 1, mark.column + 1,
                   "tags (" + tag + ") are not supported in a " + rules_.noun + "; quote what is meant as text");
  }

  void open(Node node, const std::string& tag, const YAML::Mark& mark, YAML::anchor_t anchor) {
    check_tag(mark, tag);
    if (open_.size() >= deepest) refuse(mark, "the document is nested more than " + std::to_string(deepest) + " deep");
    open_.push_back(std::move(node));
    anchors_.push_back(anchor);
  }

  void close() {
    auto node = std::move(open_.back());
    open_.pop_back();
    const auto anchor = anchors_.back();
    anchors_.pop_back();
    check_keys(node);
    leaf(named(anchor, std::move(node)));
  }

  /// A finished node goes where the innermost open one wants it: a map takes a key and a value in turn.
  void leaf(Node node) {
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    auto& parent = open_.back();
    if (parent.is_map() && parent.keys.size() == parent.items.size())
      parent.keys.push_back(std::move(node));
    else
      parent.items.push_back(std::move(node));
  }

  void check_keys(Node& node) {
    std::map<std::string, int> lines;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      auto& key = node.keys[i];
      if (!key.is_scalar()) {
        notes_.error(key, "a key is text, found " + describe(key));
        key.kind = Node::Kind::scalar;  // the rest of the document can still be looked at
        key.text.clear();
        continue;
      }
      const auto [first, fresh] = lines.emplace(key.text, key.line);
      if (!fresh)
        notes_.error(key, "key \"" + key.text + "\" is given twice; first in line " + std::to_string(first->second));
    }
  }

  Notes& notes_;
  const DocumentRules& rules_;
  std::vector<Node> open_;
  std::vector<YAML::anchor_t> anchors_;  ///< of those
  std::map<YAML::anchor_t, Node> anchored_;
  std::size_t nodes_ = 0;
};

/// YAML refuses tabs in the indentation, but says so in words that nobody understands.
bool report_tab(std::string_view text, Notes& notes) {
  int line = 1;
  for (std::size_t from = 0; from < text.size(); ++line) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto first = text.substr(from, end - from).find_first_not_of(' ');
    if (first != std::string_view::npos && text[from + first] == '\t') {
      notes.error(line, static_cast<int>(first) + 1, "this line is indented with a tab; YAML wants spaces");
      return true;
    }
    from = end + 1;
  }
  return false;
}

/// For a message of one line: control characters made visible, long text cut between characters.
std::string shortened(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (out.size() >= 57 && !continues) return out + "...";
    if (c == '\n')
      out += "\\n";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return out;
}

std::string quoted_json(const std::string& text) {
  return Value(text).dump(-1, ' ', false, Value::error_handler_t::replace);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  if (kind != Kind::map) return nullptr;
  for (std::size_t i = 0; i < keys.size() && i < items.size(); ++i)
    if (keys[i].text == key) return &items[i];
  return nullptr;
}

void Notes::add(std::vector<base::Error>& list, int line, int column, const std::string& message) {
  const auto same = std::any_of(list.begin(), list.end(), [&](const base::Error& known) {
    return known.where.line == line && known.where.column == column && known.message == message;
  });
  constexpr std::size_t most = 200;  // nobody reads more, and a generated document could have very many
  if (!same && list.size() < most) list.push_back({base::ErrorCode::bad_input, message, {file_, line, column}});
}

std::vector<base::Error> Notes::sorted(std::vector<base::Error> list) {
  std::stable_sort(list.begin(), list.end(), [](const base::Error& a, const base::Error& b) {
    return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
  });
  return list;
}

std::optional<Node> parse_document(std::string_view text, Notes& notes, const DocumentRules& rules) {
  if (text.size() > most_bytes) {
    notes.error(0, 0,
                "the document has " + std::to_string(text.size()) + " bytes; at most " + std::to_string(most_bytes) +
                    " are read");
    return std::nullopt;
  }
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(notes, rules);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder) || !builder.root) {
      notes.error(1, 1, "the document is empty; a " + rules.noun + " begins with \"" + rules.opening + "\"");
      return std::nullopt;
    }
    auto first = std::move(builder.root);
    TreeBuilder second(notes, rules);
    if (parser.HandleNextDocument(second) && second.root) {
      notes.error(*second.root, "a second document begins here; a file holds one " + rules.noun);
      return std::nullopt;
    }
    return first;
  } catch (const Refused&) {
  } catch (const YAML::Exception& exception) {
    if (!report_tab(text, notes))
      notes.error(
          std::max(exception.mark.line, 0) + 1, std::max(exception.mark.column, 0) + 1,
          "this is not YAML: " + exception.msg + " (text that holds any of [ ] { } , ? # or \": \" needs quotes)");
  }
  return std::nullopt;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::scalar: return "\"" + shortened(node.text) + "\"";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a mapping";
  }
  return "?";
}

Value to_value(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return nullptr;
    case Node::Kind::scalar: return node.plain ? plain_value(node.text) : Value(node.text);
    case Node::Kind::list: {
      auto list = Value::array();
      for (const auto& item : node.items) list.push_back(to_value(item));
      return list;
    }
    case Node::Kind::map: {
      auto object = Value::object();
      for (std::size_t i = 0; i < node.items.size(); ++i) object[node.keys[i].text] = to_value(node.items[i]);
      return object;
    }
  }
  return nullptr;
}

std::string to_json_text(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::scalar:
      if (!node.plain) return quoted_json(node.text);
      if (node.text.starts_with("${") && node.text.find('}') == node.text.size() - 1) return node.text;
      return plain_value(node.text).dump(-1, ' ', false, Value::error_handler_t::replace);
    case Node::Kind::list:
      for (const auto& item : node.items) out += (out.empty() ? "" : ",") + to_json_text(item);
      return "[" + out + "]";
    case Node::Kind::map:
      for (std::size_t i = 0; i < node.items.size(); ++i)
        out += (i == 0 ? "" : ",") + quoted_json(node.keys[i].text) + ":" + to_json_text(node.items[i]);
      return "{" + out + "}";
  }
  return out;
}

std::string flow_text(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::scalar: return node.plain ? node.text : quoted_json(node.text);
    case Node::Kind::list:
      for (const auto& item : node.items) out += (out.empty() ? "" : ", ") + flow_text(item);
      return "[" + out + "]";
    case Node::Kind::map:
      for (std::size_t i = 0; i < node.items.size(); ++i)
        out += (i == 0 ? "" : ", ") + node.keys[i].text + ": " + flow_text(node.items[i]);
      return "{ " + out + " }";
  }
  return out;
}

std::optional<std::uint64_t> whole_number(const Node& node) {
  if (!node.is_scalar() || !node.plain) return std::nullopt;
  std::uint64_t number = 0;
  const auto* end = node.text.data() + node.text.size();
  const auto [read, error] = std::from_chars(node.text.data(), end, number);
  if (error != std::errc{} || read != end || node.text.empty()) return std::nullopt;
  return number;
}

}  // namespace leafcutter::scenarios::loading
