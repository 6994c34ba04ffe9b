#include "scenarios/link_rule.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/matcher_text.hpp"
#include "scenarios/rule_arguments.hpp"
#include "scenarios/rule_terms.hpp"
#include "scenarios/rule_words.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr const char* link_rule_example = "reset caller=shop #2";

/// Keys of every rule of links, in the order of the docs. A parameter of a kind is a key as well, unless it has the
/// name of one of these.
const std::vector<rules::RuleKey>& link_rule_keys() {
  static const std::vector<rules::RuleKey> list = {
      {"link", "where `on` names several links: only this one, `\"shop -> broker\"` or `\"shop -> broker:admin\"`"},
      {"caller", "only links that this service (or `workload`) dials"},
      {"callee", "only links to this service"},
      {"port", "only links to this port, by its name"},
      {"message",
       "only these messages of each connection, counted from 1: `2`, `1..3`, `4..`. On a port of `protocol: http` "
       "requests with their responses, for the kinds that strike requests; on UDP the datagrams of a direction. Other "
       "protocols have none that could be counted, which is an error"},
      {"after-bytes",
       "only what comes in a direction after so many bytes of it: `100`, `4k`, `1M`; of `reset`: of what the caller "
       "sends"},
      {"after",
       "only once such an event was seen: `after=\"reply from=shop status=2xx\"`; connections that are open then are "
       "struck as well"},
      {"until", "of `partition`: the event that heals it"},
      {"probability",
       "each of the connections (of `message`: requests) that the rest selects, each direction for itself, with this "
       "probability, `0.25` or `25%`: a function of seed, link, connection, direction and fault. `0` touches nothing"},
  };
  return list;
}

bool is_link_rule_key(const std::string& name) {
  const auto& keys = link_rule_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const rules::RuleKey& key) { return key.name == name; });
}

/// Whether the parameter can be written as `name=value`.
bool is_written_as_key(const FaultKind& kind, const FaultParameter& parameter) {
  using Type = FaultParameter::Type;
  return parameter.type != Type::names && parameter.type != Type::event && !is_link_rule_key(parameter.name) &&
         !(kind.between && parameter.name == "at");
}

bool strikes_at(const FaultKind& kind, std::string_view operation) {
  return std::find(kind.operations.begin(), kind.operations.end(), operation) != kind.operations.end();
}

std::string declared_port(const Link& link) {
  return "port \"" + link.port + "\" of service \"" + link.to + "\" is declared as " +
         (link.protocol == Protocol::udp    ? "udp"
          : link.protocol == Protocol::http ? "http"
                                            : "tcp");
}

class LinkRuleReader : private rules::RuleWords {
 public:
  LinkRuleReader(const LinkRuleScope& scope, Mistake& mistake)
      : RuleWords(scope.events, "connections", mistake), scope_(scope) {}

  std::optional<std::vector<Fault>> read(std::string_view text) {
    if (!split(text, link_rule_example) || !read_kind() || !collect_words() || !read_keys() || !check_kind())
      return std::nullopt;
    fault_.kind = kind_->name;
    if (!(kind_->between ? part() : strike_links())) return std::nullopt;
    return std::move(faults_);
  }

 private:
  bool read_kind() {
    const auto& first = words_.front();
    const auto name = first.value.substr(0, first.value.find(':'));
    if (first.key || first.quoted)
      return wrong(first, "expected a fault of links, such as " + std::string(link_rule_example) + "; found \"" +
                              first.key.value_or(first.value) + "\"");
    kind_ = fault_kind(name);
    if (kind_ == nullptr || kind_->mechanism != Mechanism::link) {
      std::vector<std::string> known;
      for (const auto& kind : link_fault_kinds()) known.push_back(kind.name);
      const auto near = near_name(name, known);
      return wrong(first.at, std::max<std::size_t>(name.size(), 1),
                   "unknown fault of links \"" + name + "\"" +
                       (near ? "; did you mean \"" + *near + "\"?" : "; known: " + base::join_names(known)));
    }
    return rules::take_given(*kind_, first, 0, fault_.params, mistake_);
  }

  bool collect_words() {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      const auto& word = words_[i];
      if (!word.key) {
        if (!word.quoted && word.value == "uncounted")
          return wrong(word, "what strikes a link is always counted; \"uncounted\" is of system calls");
        if (!read_occurrences(i, {"first", "every", "from"})) return false;
      } else if (!take_known(word)) {
        return false;
      }
    }
    return true;
  }

  bool take_known(const Word& word) {
    if (is_link_rule_key(*word.key)) return take_key(word);
    std::vector<std::string> known;
    for (const auto& key : link_rule_keys()) known.push_back(key.name);
    for (const auto& parameter : kind_->parameters)
      if (is_written_as_key(*kind_, parameter)) {
        if (parameter.name == *word.key) return take_key(word) && take_parameter(parameter, word);
        known.push_back(parameter.name);
      }
    return wrong_key(word, "unknown key \"" + *word.key + "\"" + rules::hint(*word.key, known));
  }

  bool take_parameter(const FaultParameter& parameter, const Word& word) {
    if (fault_.params.contains(parameter.name))
      return wrong(word, "\"" + parameter.name + "\" is given twice: \"" + words_.front().value + "\" has it already");
    auto& value = fault_.params[parameter.name] = rules::argument_value(parameter, word.value);
    if (const auto checked = check_param(*kind_, parameter, value); !checked)
      return wrong_value(word, checked.error().message);
    return true;
  }

  bool read_keys() {
    for (const auto* word : keys_) {
      const auto& name = *word->key;
      if (!(name == "message"       ? read_message(*word)
            : name == "after-bytes" ? read_after_bytes(*word)
            : name == "after"       ? read_event(*word, aim_.after)
            : name == "until"       ? read_until(*word)
            : name == "probability" ? read_probability(*word, true)
                                    : true))
        return false;
    }
    return true;
  }

  bool read_message(const Word& word) {
    aim_.message = rules::size_range_in(word.value);
    if (aim_.message && aim_.message->at_least.value_or(1) >= 1 && aim_.message->at_most.value_or(1) >= 1) return true;
    return wrong_value(word,
                       "expected numbers of messages, from 1, as 2, 1..3, 4.. or ..9; found \"" + word.value + "\"");
  }

  bool read_after_bytes(const Word& word) {
    const auto bytes = rules::size_in(word.value);
    if (!bytes || *bytes == 0)
      return wrong_value(word, "expected a number of bytes as 100, 4k or 1M, found \"" + word.value + "\"");
    aim_.after_bytes = *bytes;
    return true;
  }

  bool read_until(const Word& word) {
    if (!kind_->between)
      return wrong_key(word, "\"" + kind_->name + "\" is not healed by an event; \"until\" goes with partition");
    std::string pattern;
    if (!read_event(word, pattern)) return false;
    fault_.params["until"] = pattern;
    return true;
  }

  /// What holds wherever the kind strikes.
  bool check_kind() {
    const auto& first = words_.front();
    if (!rules::has_required(*kind_, first, fault_.params, mistake_)) return false;
    if (!kind_->between)
      if (const auto right = check_params(*kind_, fault_.params); !right) return wrong(first, right.error().message);
    const auto* bytes = key("after-bytes");
    if (bytes == nullptr || kind_->from_byte) return true;
    const auto name = "\"" + kind_->name + "\" ";
    if (kind_->at_opening) return wrong_key(*bytes, name + "strikes before any byte has passed");
    if (kind_->name == "cut")
      return wrong_key(*bytes, "after how many bytes it cuts, \"cut\" says itself: write cut:" + bytes->value);
    if (kind_->name == "flip-bit") return wrong_key(*bytes, "which byte it is, \"flip-bit\" says itself: its offset");
    if (kind_->http_only) return wrong_key(*bytes, name + "strikes whole responses; say which with message=");
    if (!kind_->connections) return wrong_key(*bytes, name + "strikes datagrams, which are no stream; use message=");
    return wrong_key(*bytes, name + "does not strike the bytes of a connection, but all of it");
  }

  // --- links ---

  bool strike_links() {
    if (scope_.links.empty())
      return wrong(words_.front(),
                   "\"" + kind_->name + "\" strikes links, and \"on\" names none; write on: { link: " +
                       (scope_.between.empty() ? "caller -> service" : scope_.between.front().across.front().id()) +
                       " }");
    std::vector<Link> links;
    if (!narrowed(scope_.links, links)) return false;
    for (const auto& link : links) {
      auto fault = fault_;
      fault.site = {link.id(), operation_on(link), ""};
      fault.aim = aim_;
      if (!check_on(link, fault)) return false;
      faults_.push_back(std::move(fault));
    }
    return true;
  }

  static bool is_named(const Link& link, const std::string& key, const std::string& value) {
    if (key == "caller") return link.from == value;
    if (key == "callee") return link.to == value;
    if (key == "port") return link.port == value;
    return value == link.id() || value == link.from + " -> " + link.to;
  }

  static std::string name_in(const Link& link, const std::string& key) {
    return key == "caller" ? link.from : key == "callee" ? link.to : key == "port" ? link.port : link.id();
  }

  /// Those links that `link`, `caller`, `callee` and `port` leave; each of them leaves some.
  bool narrowed(std::vector<Link> links, std::vector<Link>& out) {
    for (const auto* word : keys_) {
      const auto& name = *word->key;
      if (name != "link" && name != "caller" && name != "callee" && name != "port") continue;
      std::vector<std::string> known;
      for (const auto& link : links)
        if (std::find(known.begin(), known.end(), name_in(link, name)) == known.end())
          known.push_back(name_in(link, name));
      std::erase_if(links, [&](const Link& link) { return !is_named(link, name, word->value); });
      if (links.empty())
        return wrong_value(*word, "no link of the rule's \"on\" " + std::string(out_of(name)) + " \"" + word->value +
                                      "\"" + rules::hint(word->value, known));
    }
    out = std::move(links);
    return true;
  }

  static const char* out_of(const std::string& key) {
    return key == "caller" ? "begins at" : key == "callee" ? "leads to" : key == "port" ? "leads to a port" : "is";
  }

  bool strikes_requests(const Link& link) const {
    return link.protocol == Protocol::http && strikes_at(*kind_, "request") && !strikes_stream(*kind_, fault_.params) &&
           aim_.after_bytes == 0;
  }

  std::string operation_on(const Link& link) const {
    return link.is_datagrams() ? "session" : strikes_requests(link) ? "request" : "connect";
  }

  bool check_on(const Link& link, const Fault& fault) {
    const auto& first = words_.front();
    const auto name = "\"" + kind_->name + "\" ";
    if (link.is_datagrams() && !kind_->datagrams)
      return wrong(first, name + "strikes connections, but " + declared_port(link));
    if (!link.is_datagrams() && !kind_->connections)
      return wrong(first, name + "strikes datagrams, but " + declared_port(link));
    if (kind_->http_only && link.protocol != Protocol::http)
      return wrong(first, name + "needs to see requests, but " + declared_port(link) + "; declare { port: " +
                              std::to_string(link.number) + ", protocol: http } if it speaks HTTP");
    if (link.is_datagrams() && fault.params.value("mode", "") == "stall")
      return wrong(first, "who sends datagrams feels nothing: \"mode\" cannot be stall, since " + declared_port(link));
    return check_message(link) && check_datagrams(link);
  }

  bool check_message(const Link& link) {
    const auto* message = key("message");
    if (message == nullptr || link.is_datagrams()) return true;
    if (link.protocol == Protocol::tcp)
      return wrong_key(*message, declared_port(link) + ", whose messages nobody can tell apart; declare protocol: " +
                                     "http if it speaks HTTP, or count bytes with after-bytes=");
    if (!strikes_requests(link))
      return wrong_key(*message,
                       "\"" + words_.front().value + "\" " +
                           (kind_->at_opening ? "strikes before there is any request"
                            : aim_.after_bytes > 0
                                ? "with after-bytes= strikes the bytes of a connection, whatever they mean; leave one "
                                  "of the two out"
                                : "strikes the bytes of a connection, whatever they mean; use after-bytes="));
    return true;
  }

  bool check_datagrams(const Link& link) {
    if (!link.is_datagrams()) return true;
    const auto* bytes = key("after-bytes");
    if (bytes != nullptr)
      return wrong_key(*bytes, "datagrams are no stream: use message=, since " + declared_port(link));
    const auto* message = key("message");
    const bool one = kind_->name == "lose-datagram" || fault_.params.contains("nth");
    if (message != nullptr && one)
      return wrong_key(*message, "which datagram it is, \"" + kind_->name + "\" says itself: its \"nth\"");
    const auto* probability = key("probability");
    if (probability != nullptr && kind_->name != "loss" && fault_.params.contains("probability"))
      return wrong_key(*probability,
                       "\"" + kind_->name + "\" has a probability of each datagram already; leave one of the two out");
    return true;
  }

  // --- partitions ---

  bool part() {
    if (scope_.between.empty()) {
      const auto sides = scope_.links.empty() ? std::string("caller, and: service")
                                              : scope_.links.front().from + ", and: " + scope_.links.front().to;
      return wrong(words_.front(),
                   "\"" + kind_->name + "\" is between sets of services; write on: { between: " + sides + " }");
    }
    for (const char* name : {"message", "after-bytes", "probability"})
      if (const auto* word = key(name))
        return wrong_key(*word, "a partition strikes everything across, once: it takes after= or #n; found \"" +
                                    std::string(name) + "\"");
    if (aim_.after.empty() && occurrences_ == nullptr)
      return wrong(words_.front(),
                   "\"" + kind_->name + "\" needs the event that it begins after, such as after=\"ready service=" +
                       scope_.between.front().second.front() + "\", or the connection that it begins at, such as #1");
    if (occurrences_ != nullptr && !aim_.after.empty())
      return wrong(*occurrences_, "a partition begins after an event or at a connection; leave one of the two out");
    if (occurrences_ != nullptr && aim_.occurrences.which != Occurrences::Which::nth)
      return wrong(*occurrences_, "a partition begins once: at the n-th connection, #n");
    return aim_.after.empty() ? part_at_connections() : part_after_event();
  }

  Fault parted(const Parting& sides, Site site) const {
    auto fault = fault_;
    fault.site = std::move(site);
    fault.params["between"] = sides.first;
    fault.params["and"] = sides.second;
    fault.aim = aim_;
    return fault;
  }

  bool part_after_event() {
    for (const char* name : {"link", "caller", "callee", "port"})
      if (const auto* word = key(name))
        return wrong_key(*word, "which connection a partition begins at is for #n; this one begins after an event");
    for (const auto& sides : scope_.between) faults_.push_back(parted(sides, {workload_lane, "event", ""}));
    return true;
  }

  bool part_at_connections() {
    for (const auto& sides : scope_.between) {
      std::vector<Link> links;
      for (const auto& link : sides.across)
        if (!link.is_datagrams()) links.push_back(link);
      if (links.empty()) return wrong(*occurrences_, "no connections lead across, only datagrams; use after=");
      std::vector<Link> chosen;
      if (!narrowed(links, chosen)) return false;
      for (const auto& link : chosen) faults_.push_back(parted(sides, {link.id(), "connect", ""}));
    }
    return true;
  }

  const LinkRuleScope& scope_;
  const FaultKind* kind_ = nullptr;
  std::vector<Fault> faults_;
};

}  // namespace

bool names_link_kind(std::string_view text) {
  Mistake ignored;
  const auto words = split_words(text.substr(0, 4096), ignored);
  if (!words || words->empty() || words->front().key || words->front().quoted) return false;
  const auto& value = words->front().value;
  const auto* kind = fault_kind(value.substr(0, value.find(':')));
  return kind != nullptr && kind->mechanism == Mechanism::link;
}

std::optional<std::vector<Fault>> read_link_rule(std::string_view text, const LinkRuleScope& scope, Mistake& mistake) {
  return LinkRuleReader(scope, mistake).read(text);
}

std::string link_rule_text(const Fault& fault) {
  const auto* kind = fault_kind(fault.kind);
  if (kind == nullptr) return fault.kind;
  const auto written = [&](const FaultParameter& parameter) {
    const auto given = fault.params.find(parameter.name);
    if (given == fault.params.end()) return std::string();
    return given->is_string() ? given->get<std::string>() : given->dump();
  };
  using Type = FaultParameter::Type;
  // By their place: those at the front, and all up to one that cannot be a key.
  std::size_t by_place = 0;
  bool gap = false;
  for (std::size_t i = 0; i < kind->parameters.size(); ++i) {
    const auto& parameter = kind->parameters[i];
    if (parameter.type == Type::event || parameter.type == Type::names) break;
    gap |= written(parameter).empty();
    if (!written(parameter).empty() && (!gap || !is_written_as_key(*kind, parameter))) by_place = i + 1;
  }
  auto out = fault.kind;
  std::string keys;
  for (std::size_t i = 0; i < kind->parameters.size(); ++i) {
    const auto& parameter = kind->parameters[i];
    const auto text = written(parameter);
    if (i < by_place)
      out += (i == 0 ? ":" : ",") + text;
    else if (parameter.type != Type::names && !text.empty())
      keys += " " + parameter.name + "=" + quoted_word(text);
  }
  out += keys;
  const auto narrowed = fault.aim ? fault.aim->text() : "";
  return narrowed.empty() ? out : out + " " + narrowed;
}

std::string link_rules_section() {
  std::string out =
      "\n## Rules of links\n\n"
      "A fault of links on one line, for `rules` in a scenario, where `on` names a link (or, of `partition`, two "
      "sides):\n\n"
      "```\nKIND[:ARGUMENT[,ARGUMENT]] [key=value]... [#n | first n | every n | from n]\n```\n\n"
      "- `KIND` is any fault of links from the table above, its parameters after a colon in the table's order "
      "(`latency:50ms`, `bandwidth:10k`, `cut:100,,reset`;\n  nothing between two commas leaves one out), or as keys "
      "(`bandwidth:10k flow=to-caller`), unless a key of the table below has that name.\n"
      "- Which of the connections (on UDP: sessions) that the keys select, counted on each link in the order in which "
      "they are opened: the\n  n-th alone (`#2`), the first n, every n-th, or all from the n-th on; all of them when "
      "nothing is said.\n"
      "- With `after`, counting begins with the event, first with what is open then, the oldest first (a session of "
      "UDP "
      "is open for a minute after its last\n  datagram). Faults that strike before a connection is open count new ones "
      "only.\n"
      "- On a port with `protocol: http`, the kinds that strike requests strike those of the selected connections (a "
      "connection that was open at the event of\n  `after` is counted at its next request); with `after-bytes` or a "
      "parameter \"of the connection\" they strike its bytes.\n"
      "- `latency` without a distribution delays every piece of the selected connections; `reset` comes with the "
      "caller's first bytes, on a connection that\n  was open at the event at once.\n"
      "- `partition:2s after=EVENT` begins after the event, `partition:2s #3` when the third connection across is "
      "opened "
      "(`link`, `caller`, `callee` and\n  `port` narrow on which links).\n"
      "- A connection that no rule selects takes no other way than without rules, and a probability of 0 sets nothing "
      "up "
      "at all. Where `after` may strike\n  connections that are open, those of the link pass through the engine from "
      "their beginning.\n\n"
      "| key | selects |\n|---|---|\n";
  for (const auto& key : link_rule_keys()) out += "| `" + key.name + "` | " + key.about + " |\n";
  return out;
}

}  // namespace leafcutter::scenarios
