#include "node/toxiproxy/book.hpp"

#include <algorithm>
#include <set>

#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

constexpr const char* any_free_port = "127.0.0.1:0";

base::Error missing_field(const std::string& field) {
  return {base::ErrorCode::bad_input, "missing required field: " + field, {}};
}

base::Error add_to_message(base::Error error, const std::string& suffix) {
  error.message += suffix;
  return error;
}

base::Status good_upstream(const std::string& upstream) {
  const auto address = proxy::parse_host_port(upstream, "upstream");
  if (!address) return base::Error{base::ErrorCode::bad_input, "bad request body: " + address.error().message, {}};
  if (address->port == 0)
    return base::Error{base::ErrorCode::bad_input, "bad request body: upstream: port 0; 1 to 65535 would do", {}};
  return base::ok();
}

/// Only what is listened on has to be an address.
base::Status good_listen(const Proxy& proxy) {
  if (!proxy.enabled) return base::ok();
  const auto address = proxy::parse_host_port(listen_address(proxy.listen), "listen");
  if (address) return base::ok();
  return base::Error{base::ErrorCode::bad_input, "bad request body: " + address.error().message, {}};
}

base::Error too_many(const std::string& what, std::size_t most) {
  return {base::ErrorCode::bad_input, "bad request body: more than " + std::to_string(most) + " " + what, {}};
}

/// Those that a proxy is to have, when the request says so.
base::Expected<std::vector<Toxic>> toxics_of(const ProxyInput& input, Notes& notes) {
  std::vector<Toxic> toxics;
  for (const auto& one : input.toxics.value_or(std::vector<ToxicInput>{})) {
    auto toxic = new_toxic(one, notes);
    const auto where = " (toxics[" + std::to_string(toxics.size()) + "])";
    if (!toxic) return add_to_message(toxic.error(), where);
    for (const auto& other : toxics)
      if (other.name == toxic->name) return base::Error{base::ErrorCode::conflict, "toxic already exists" + where, {}};
    toxics.push_back(std::move(*toxic));
  }
  return toxics;
}

base::Expected<Proxy> new_proxy(const ProxyInput& input, Notes& notes) {
  Proxy proxy;
  proxy.name = input.name.value_or("");
  proxy.asked = proxy.listen = input.listen.value_or("");
  proxy.upstream = input.upstream.value_or("");
  proxy.enabled = input.enabled.value_or(true);
  if (const auto good = good_upstream(proxy.upstream); !good) return good.error();
  auto toxics = toxics_of(input, notes);
  if (!toxics) return toxics.error();
  proxy.toxics = std::move(*toxics);
  return proxy;
}

/// A link counts its connections from 1.
void count_from_start(Proxy& proxy) {
  for (auto& toxic : proxy.toxics) toxic.after = 0;
}

AddLink link_of(Proxy proxy) {
  count_from_start(proxy);
  return {proxy.name, listen_address(proxy.listen), proxy.upstream, faults_of(proxy.toxics), proxy.enabled};
}

/// Makes a proxy that has no link.
Step step_to_add(Proxy proxy) {
  Step step{proxy.name, proxy, {}, {}};
  if (proxy.enabled) step.operations.push_back(link_of(proxy));
  return step;
}

/// Puts `after`, which listens or leads elsewhere, in the place of `before`.
Step step_to_replace(const Proxy& before, Proxy after) {
  after.linked = false;
  Step step = step_to_add(std::move(after));
  if (!before.linked) return step;
  step.operations.insert(step.operations.begin(), RemoveLink{before.name});
  step.undo.push_back(link_of(before));
  return step;
}

Step step_with_toxics(const Proxy& before, std::vector<Toxic> toxics) {
  Step step{before.name, before, {}, {}};
  step.after->toxics = std::move(toxics);
  if (before.linked) step.operations.push_back(ReplaceFaults{{{before.name, faults_of(step.after->toxics)}}});
  return step;
}

bool listens_on(const Proxy& proxy, const std::string& given) {
  return given == proxy.asked || listen_address(given) == listen_address(proxy.listen);
}

/// Adds what enables or disables the proxy of the step, as `enabled` says.
void enable(Step& step, const Proxy& before, bool enabled) {
  step.after->enabled = enabled;
  if (enabled == before.enabled) return;
  if (before.linked)
    step.operations.push_back(SetEnabled{before.name, enabled});
  else if (enabled)
    step.operations.push_back(link_of(*step.after));
}

}  // namespace

std::string listen_address(const std::string& given) {
  constexpr std::string_view local = "localhost:";
  if (given.empty()) return any_free_port;
  if (given.rfind(local, 0) == 0) return "127.0.0.1:" + given.substr(local.size());
  return given.front() == ':' ? "[::]" + given : given;
}

const Toxic* Proxy::toxic(const std::string& toxic_name) const {
  const auto found =
      std::find_if(toxics.begin(), toxics.end(), [&](const Toxic& one) { return one.name == toxic_name; });
  return found == toxics.end() ? nullptr : &*found;
}

const Proxy* Book::find(const std::string& name) const {
  const auto found = proxies_.find(name);
  return found == proxies_.end() ? nullptr : &found->second;
}

base::Expected<Change> Book::create(const ProxyInput& input, Notes& notes) const {
  if (input.name.value_or("").empty()) return missing_field("name");
  if (input.upstream.value_or("").empty()) return missing_field("upstream");
  if (find(*input.name) != nullptr) return base::Error{base::ErrorCode::conflict, "proxy already exists", {}};
  if (proxies_.size() >= most_proxies) return too_many("proxies", most_proxies);
  auto proxy = new_proxy(input, notes);
  if (!proxy) return proxy.error();
  if (const auto good = good_listen(*proxy); !good) return good.error();
  return Change{{step_to_add(std::move(*proxy))}};
}

base::Expected<Change> Book::populate(const std::vector<ProxyInput>& inputs, const CountAccepted& accepted,
                                      Notes& notes) const {
  Change change;
  std::set<std::string> names;
  std::vector<Proxy> wanted;
  for (const auto& input : inputs) {
    const auto at = " at proxy " + std::to_string(wanted.size() + 1);
    if (input.name.value_or("").empty()) return missing_field("name" + at);
    if (input.upstream.value_or("").empty()) return missing_field("upstream" + at);
    if (!names.insert(*input.name).second)
      return base::Error{base::ErrorCode::bad_input, "bad request body: duplicate proxy name" + at, {}};
    auto proxy = new_proxy(input, notes);
    if (!proxy) return add_to_message(proxy.error(), at);
    wanted.push_back(std::move(*proxy));
  }
  for (const auto& [name, proxy] : proxies_) names.insert(name);
  if (names.size() > most_proxies) return too_many("proxies", most_proxies);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto& proxy = wanted[i];
    const auto* before = find(proxy.name);
    if (before == nullptr)
      change.steps.push_back(step_to_add(std::move(proxy)));
    else if (!listens_on(*before, proxy.asked) || before->upstream != proxy.upstream)
      change.steps.push_back(step_to_replace(*before, std::move(proxy)));
    else if (inputs[i].toxics && !say_the_same(before->toxics, proxy.toxics)) {
      for (auto& toxic : proxy.toxics) toxic.after = before->linked ? accepted(proxy.name) : 0;
      change.steps.push_back(step_with_toxics(*before, std::move(proxy.toxics)));
    } else
      change.steps.push_back({before->name, *before, {}, {}});
  }
  return change;
}

base::Expected<Change> Book::update(const Proxy& before, const ProxyInput& input) const {
  auto after = before;
  if (input.upstream) after.upstream = *input.upstream;
  const bool moves = input.listen && !listens_on(before, *input.listen);
  if (moves) after.listen = after.asked = *input.listen;
  if (moves || after.upstream != before.upstream) {
    if (after.upstream.empty()) return missing_field("upstream");
    if (const auto good = good_upstream(after.upstream); !good) return good.error();
    after.enabled = input.enabled.value_or(before.enabled);
    if (const auto good = good_listen(after); !good) return good.error();
    return Change{{step_to_replace(before, std::move(after))}};
  }
  Step step{before.name, after, {}, {}};
  enable(step, before, input.enabled.value_or(before.enabled));
  return Change{{std::move(step)}};
}

Change Book::remove(const Proxy& proxy) const {
  Step step{proxy.name, std::nullopt, {}, {}};
  if (proxy.linked) step.operations.push_back(RemoveLink{proxy.name});
  return {{std::move(step)}};
}

base::Expected<Change> Book::add_toxic(const Proxy& proxy, Toxic toxic) const {
  if (proxy.toxic(toxic.name) != nullptr) return base::Error{base::ErrorCode::conflict, "toxic already exists", {}};
  if (proxy.toxics.size() >= most_toxics_of_proxy) return too_many("toxics of a proxy", most_toxics_of_proxy);
  auto toxics = proxy.toxics;
  toxics.push_back(std::move(toxic));
  return Change{{step_with_toxics(proxy, std::move(toxics))}};
}

Change Book::replace_toxic(const Proxy& proxy, Toxic toxic) const {
  auto toxics = proxy.toxics;
  for (auto& one : toxics)
    if (one.name == toxic.name) one = toxic;
  return {{step_with_toxics(proxy, std::move(toxics))}};
}

Change Book::remove_toxic(const Proxy& proxy, const std::string& toxic) const {
  auto toxics = proxy.toxics;
  std::erase_if(toxics, [&](const Toxic& one) { return one.name == toxic; });
  return {{step_with_toxics(proxy, std::move(toxics))}};
}

/// The toxics of all first, in one step of the engine, so that no port that is taken keeps any of them.
Change Book::reset() const {
  Change change{{}, true};
  ReplaceFaults healthy;
  for (const auto& [name, proxy] : proxies_) {
    if (proxy.linked) healthy.sets[name] = {};
    Step step{name, proxy, {}, {}};
    step.after->toxics.clear();
    change.steps.push_back(std::move(step));
  }
  if (!healthy.sets.empty()) change.steps.front().operations.push_back(std::move(healthy));
  for (const auto& [name, proxy] : proxies_) {
    if (proxy.enabled) continue;
    Step step{name, proxy, {}, {}};
    step.after->toxics.clear();
    enable(step, proxy, true);
    change.steps.push_back(std::move(step));
  }
  return change;
}

Outcome Book::carry_out(const Change& change, const Perform& perform) {
  Outcome outcome;
  for (const auto& step : change.steps) {
    if (auto error = carry_out(step, perform)) {
      if (!outcome.failed) outcome.failed = std::move(error);
      if (!change.goes_on) break;
    } else {
      outcome.done.push_back(step.proxy);
    }
  }
  return outcome;
}

std::optional<base::Error> Book::carry_out(const Step& step, const Perform& perform) {
  auto after = step.after;
  for (std::size_t i = 0; i < step.operations.size(); ++i) {
    const auto& operation = step.operations[i];
    auto done = perform(operation);
    if (done) {
      if (after && std::holds_alternative<AddLink>(operation)) {
        after->linked = true;
        after->listen = *done;
        count_from_start(*after);
      }
      continue;
    }
    // What was there before is there again, or else is known to be gone.
    auto before = proxies_.find(step.proxy);
    for (std::size_t one = 0; i > 0 && one < step.undo.size() && before != proxies_.end(); ++one) {
      if (!perform(step.undo[one])) before->second.linked = before->second.enabled = false;
      count_from_start(before->second);
    }
    return done.error();
  }
  if (after)
    proxies_[step.proxy] = std::move(*after);
  else
    proxies_.erase(step.proxy);
  return std::nullopt;
}

}  // namespace leafcutter::node::toxiproxy
