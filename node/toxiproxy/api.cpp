#include "node/toxiproxy/api.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/random.hpp"
#include "http/exposition.hpp"
#include "http/token.hpp"
#include "node/toxiproxy/metrics.hpp"
#include "node/toxiproxy/render.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

constexpr const char* plain_text = "text/plain; charset=utf-8";
constexpr const char* json_type = "application/json";

http::Reply text_reply(unsigned status, std::string text) {
  return {status, {{"Content-Type", plain_text}, {"X-Content-Type-Options", "nosniff"}}, std::move(text) + "\n"};
}

http::Reply json_reply(unsigned status, std::string body) {
  return {status, {{"Content-Type", json_type}}, std::move(body)};
}

/// Errors are JSON, and are said to be text: so it is with Toxiproxy.
http::Reply error_reply(unsigned status, const std::string& message) {
  return text_reply(status, json_of_error(message, status));
}

unsigned status_of(const base::Error& error) {
  if (error.code == base::ErrorCode::bad_input) return 400;
  return error.code == base::ErrorCode::conflict ? 409 : 500;
}

http::Reply error_reply(const base::Error& error) { return error_reply(status_of(error), error.message); }

http::Reply not_allowed(const std::string& allowed) { return {405, {{"Allow", allowed}}, ""}; }
http::Reply no_such_page() { return text_reply(404, "404 page not found"); }

/// "a%20b" -> "a b"; nothing when a percent sign is followed by no number.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned char byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto* digits = text.data() + i + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc{} || end != digits + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

/// "/proxies/a/toxics?x" -> {"proxies", "a", "toxics"}; nothing when a part is empty or cannot be read.
std::optional<std::vector<std::string>> parts_of(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  if (target.empty() || target.front() != '/') return std::nullopt;
  std::vector<std::string> parts;
  while (!target.empty()) {
    target.remove_prefix(1);
    const auto end = std::min(target.find('/'), target.size());
    auto part = decoded(target.substr(0, end));
    if (!part || part->empty()) return std::nullopt;
    parts.push_back(std::move(*part));
    target.remove_prefix(end);
  }
  return parts;
}

bool is_update(const std::string& method) { return method == "POST" || method == "PATCH"; }

/// A note as the text of a Warning header (RFC 7234, 5.5): nothing that could end it.
std::string warning_of(const std::string& note) {
  std::string text = "299 leafcutter \"";
  for (const char c : note) {
    if (c == '"')
      text += '\'';
    else
      text += c >= ' ' && c <= '~' && c != '\\' ? c : '?';
  }
  return text + '"';
}

constexpr std::size_t longest_warning = 300;

/// Adds the name that this would listen on, if it is one and no address.
void add_name(const std::string& listen, std::vector<proxy::HostPort>& names) {
  const auto address = proxy::parse_host_port(listen_address(listen), "listen");
  if (address && proxy::literal_address(*address).empty()) names.push_back(*address);
}

}  // namespace

Api::Api(Links& links, std::string token, std::uint64_t identity)
    : links_(links), token_(std::move(token)), identity_(identity) {}

/// 20 of 32 digits, as Toxiproxy's are.
std::string Api::next_request_id() {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuv";
  ++requests_;
  std::string id;
  for (std::uint64_t half = 0; half < 2; ++half) {
    auto bits = base::split_mix(identity_ + 2 * requests_ + half);
    for (int i = 0; i < 10; ++i, bits >>= 5) id += digits[bits & 31];
  }
  return id;
}

CountAccepted Api::counter() const {
  return [this](const std::string& proxy) { return links_.accepted(proxy); };
}

http::Reply Api::answer(const http::Request& request) {
  notes_.clear();
  auto reply = route(request);
  ++stats_.replies[std::min<std::size_t>(reply.status / 100, stats_.replies.size() - 1)];
  reply.headers.emplace_back("X-Toxiproxy-Request-Id", next_request_id());
  for (const auto& note : notes_) reply.headers.emplace_back("Warning", warning_of(note.substr(0, longest_warning)));
  return reply;
}

bool Api::is_allowed(const http::Request& request) const {
  return token_.empty() || http::is_bearer_of(request.authorization, token_);
}

std::vector<proxy::HostPort> Api::names_wanted(const http::Request& request) const {
  const auto parts = parts_of(request.target);
  if (!is_allowed(request) || !is_update(request.method) || !parts || parts->empty() || parts->size() > 2) return {};
  const auto& first = parts->front();
  if (first == "populate") return names_wanted(request.body);
  std::vector<proxy::HostPort> names;
  if (first == "proxies") {
    Notes unsaid;
    if (const auto input = read_proxy(request.body, unsaid); input && input->listen) add_name(*input->listen, names);
  }
  // Those that have not listened yet and may by this.
  for (const auto& [name, proxy] : book_.proxies())
    if (!proxy.linked && (first == "reset" || (parts->size() == 2 && name == parts->back())))
      add_name(proxy.listen, names);
  return names;
}

std::vector<proxy::HostPort> Api::names_wanted(std::string_view json) const {
  Notes unsaid;
  std::vector<proxy::HostPort> names;
  if (const auto inputs = read_proxies(json, unsaid, ProxyList::array_or_named))
    for (const auto& input : *inputs) add_name(input.listen.value_or(""), names);
  return names;
}

http::Reply Api::route(const http::Request& request) {
  if (request.user_agent.rfind("Mozilla/", 0) == 0) return text_reply(403, "User agent not allowed");
  if (!is_allowed(request)) {
    auto refused = error_reply(401, "the token is missing or wrong; Authorization: Bearer TOKEN would do");
    refused.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refused;
  }
  const auto parts = parts_of(request.target);
  if (!parts || parts->empty()) return no_such_page();
  const auto& first = parts->front();
  const bool alone = parts->size() == 1;
  if (first == "proxies") {
    if (alone) return on_proxies(request);
    if (parts->size() == 2) return on_proxy(request, (*parts)[1]);
    if (parts->size() > 4 || (*parts)[2] != "toxics") return no_such_page();
    const bool known = parts->size() == 3
                           ? request.method == "GET" || request.method == "POST"
                           : request.method == "GET" || request.method == "DELETE" || is_update(request.method);
    if (!known) return not_allowed(parts->size() == 3 ? "GET, POST" : "GET, POST, PATCH, DELETE");
    const auto* proxy = book_.find((*parts)[1]);
    if (proxy == nullptr) return error_reply(404, "proxy not found");
    return parts->size() == 3 ? on_toxics(request, *proxy) : on_toxic(request, *proxy, (*parts)[3]);
  }
  const bool get = request.method == "GET", post = request.method == "POST";
  if (alone && first == "populate") return post ? on_populate(request) : not_allowed("POST");
  if (alone && first == "reset") return post ? on_reset() : not_allowed("POST");
  if (alone && first == "version")
    return get ? http::Reply{200,
                             {{"Content-Type", "application/json;charset=utf-8"}},
                             std::string("{\"version\": \"") + compatible_version + "\"}\n"}
               : not_allowed("GET");
  if (alone && first == "metrics")
    return get ? http::Reply{200,
                             {{"Content-Type", http::Exposition::content_type}},
                             metrics_text(book_, links_.stats(), stats_)}
               : not_allowed("GET");
  return no_such_page();
}

template <class Body>
http::Reply Api::carry_out(const base::Expected<Change>& change, unsigned status, Body body) {
  if (!change) return error_reply(change.error());
  const auto outcome = book_.carry_out(*change, [this](const Operation& one) { return links_.perform(one); });
  if (outcome.failed) return error_reply(500, outcome.failed->message);
  return status == 204 ? http::Reply{204} : json_reply(status, body());
}

http::Reply Api::on_proxies(const http::Request& request) {
  if (request.method == "GET") return json_reply(200, json_of(book_.proxies()));
  if (request.method != "POST") return not_allowed("GET, POST");
  const auto input = read_proxy(request.body, notes_);
  if (!input) return error_reply(input.error());
  return carry_out(book_.create(*input, notes_), 201, [&] { return json_of(*book_.find(*input->name)); });
}

http::Reply Api::on_proxy(const http::Request& request, const std::string& name) {
  const bool get = request.method == "GET", remove = request.method == "DELETE";
  if (!get && !remove && !is_update(request.method)) return not_allowed("GET, POST, PATCH, DELETE");
  const auto* proxy = book_.find(name);
  if (proxy == nullptr) return error_reply(404, "proxy not found");
  if (get) return json_reply(200, json_of(*proxy));
  if (remove) return carry_out(book_.remove(*proxy), 204, [] { return ""; });
  // Its toxics are left alone, whatever the request says of them: clients send back what they last heard.
  const auto input = read_proxy(request.body, notes_);
  if (!input) return error_reply(input.error());
  return carry_out(book_.update(*proxy, *input), 200, [&] { return json_of(*book_.find(name)); });
}

http::Reply Api::on_toxics(const http::Request& request, const Proxy& proxy) {
  if (request.method == "GET") return json_reply(200, json_of_toxics(proxy));
  const auto input = read_toxic(request.body, notes_);
  if (!input) return error_reply(input.error());
  auto toxic = new_toxic(*input, notes_);
  if (!toxic) return error_reply(toxic.error());
  toxic->after = links_.accepted(proxy.name);
  return carry_out(book_.add_toxic(proxy, *toxic), 200, [&] { return json_of(*toxic); });
}

http::Reply Api::on_toxic(const http::Request& request, const Proxy& proxy, const std::string& name) {
  const auto* toxic = proxy.toxic(name);
  if (toxic == nullptr) return error_reply(404, "toxic not found");
  if (request.method == "GET") return json_reply(200, json_of(*toxic));
  if (request.method == "DELETE") return carry_out(book_.remove_toxic(proxy, name), 204, [] { return ""; });
  const auto input = read_toxic(request.body, notes_);
  if (!input) return error_reply(input.error());
  auto changed = changed_toxic(*toxic, *input, notes_);
  if (!changed) return error_reply(changed.error());
  if (input->only) changed->after = links_.accepted(proxy.name);
  return carry_out(book_.replace_toxic(proxy, *changed), 200, [&] { return json_of(*changed); });
}

http::Reply Api::on_populate(const http::Request& request) {
  const auto refuse = [](const base::Error& error) {
    return json_reply(status_of(error), json_of_populated({}, error.message, status_of(error)));
  };
  const auto inputs = read_proxies(request.body, notes_);
  if (!inputs) return refuse(inputs.error());
  const auto change = book_.populate(*inputs, counter(), notes_);
  if (!change) return refuse(change.error());
  const auto outcome = book_.carry_out(*change, [this](const Operation& one) { return links_.perform(one); });
  std::vector<const Proxy*> proxies;
  for (const auto& name : outcome.done) proxies.push_back(book_.find(name));
  if (!outcome.failed) return json_reply(201, json_of_populated(proxies, "", 201));
  return json_reply(500, json_of_populated(proxies, outcome.failed->message, 500));
}

http::Reply Api::on_reset() {
  return carry_out(book_.reset(), 204, [] { return ""; });
}

base::Status Api::populate(std::string_view json, Notes& notes) {
  const auto inputs = read_proxies(json, notes, ProxyList::array_or_named);
  if (!inputs) return inputs.error();
  const auto change = book_.populate(*inputs, counter(), notes);
  if (!change) return change.error();
  const auto outcome = book_.carry_out(*change, [this](const Operation& one) { return links_.perform(one); });
  if (outcome.failed) return *outcome.failed;
  return base::ok();
}

}  // namespace leafcutter::node::toxiproxy
