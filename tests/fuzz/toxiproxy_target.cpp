// Toxiproxy's interface under requests from outside: whatever comes, every reply is one that a client can read, and the
// engine has exactly the links that the book of proxies says it has.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "corpus.hpp"
#include "node/proxy/socket_address.hpp"
#include "node/toxiproxy/api.hpp"
#include "targets.hpp"

namespace fuzz {
namespace {

using namespace leafcutter;
using namespace leafcutter::node::toxiproxy;
namespace proxy = leafcutter::node::proxy;

void must(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

/// An engine on paper, as strict as the real one; it cannot listen on odd ports.
class PaperLinks final : public Links {
 public:
  struct PaperLink {
    std::string upstream;
    bool enabled = true;
    proxy::FaultSet faults;
  };

  base::Expected<std::string> perform(const Operation& operation) override {
    if (const auto* add = std::get_if<AddLink>(&operation)) return add_link(*add);
    if (const auto* remove = std::get_if<RemoveLink>(&operation)) {
      must(links.erase(remove->name) == 1, "a link is removed that is not there");
    } else if (const auto* change = std::get_if<SetEnabled>(&operation)) {
      must(links.count(change->name) == 1, "a link is switched that is not there");
      links[change->name].enabled = change->enabled;
    } else {
      for (const auto& [name, set] : std::get<ReplaceFaults>(operation).sets) {
        must(links.count(name) == 1, "faults are for a link that is not there");
        must(proxy::checked(set, proxy::Transport::tcp).ok(), "the engine would refuse these faults");
        links[name].faults = set;
      }
    }
    return std::string();
  }
  proxy::EngineStats stats() const override {
    proxy::EngineStats all;
    for (const auto& [name, link] : links) all.links[name].name = name;
    return all;
  }
  std::uint64_t accepted(const std::string&) const override { return 3; }

  std::map<std::string, PaperLink> links;

 private:
  base::Expected<std::string> add_link(const AddLink& add) {
    must(links.count(add.name) == 0, "a link is added that is there");
    must(!add.name.empty(), "a link has no name");
    must(proxy::checked(add.faults, proxy::Transport::tcp).ok(), "the engine would refuse these faults");
    const auto listen = proxy::parse_host_port(add.listen, "listen");
    must(proxy::parse_host_port(add.upstream, "upstream").ok(), "the engine would refuse this upstream");
    if (!listen || listen->port % 2 == 1) return base::Error{base::ErrorCode::conflict, "taken", {}};
    links[add.name] = {add.upstream, add.enabled, add.faults};
    return listen->port == 0 ? listen->host + ":4000" : add.listen;
  }
};

void check_reply(const http::Reply& reply) {
  must(reply.status >= 200 && reply.status < 600, "a reply has no status");
  must(reply.status != 401, "a token is asked for that there is not");
  for (const auto& [name, value] : reply.headers) {
    for (const char c : name + value) must(c >= ' ' && c <= '~', "a header holds what none may");
  }
  must(reply.header("X-Toxiproxy-Request-Id") != nullptr, "a reply without a request id");
  const auto* type = reply.header("Content-Type");
  const bool json = type != nullptr && *type == "application/json";
  if (reply.status == 204 || reply.status == 405) must(reply.body.empty(), "a body where there is none");
  if (json || reply.status == 400 || reply.status == 409 || reply.status == 500)
    must(nlohmann::json::accept(reply.body), "a reply is not the JSON that it should be");
}

void check_book(const Book& book, const PaperLinks& paper) {
  std::size_t linked = 0;
  for (const auto& [name, one] : book.proxies()) {
    must(name == one.name && !name.empty(), "a proxy is kept under another name");
    for (std::size_t i = 0; i < one.toxics.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) must(one.toxics[i].name != one.toxics[k].name, "two toxics have one name");
    const auto link = paper.links.find(name);
    must(one.linked == (link != paper.links.end()), "whether there is a link is not known");
    must(one.linked || !one.enabled, "an enabled proxy has no link");
    if (!one.linked) continue;
    ++linked;
    must(link->second.enabled == one.enabled && link->second.upstream == one.upstream, "a link is not as it is known");
    must(link->second.faults == faults_of(one.toxics), "a link has other faults than its toxics");
  }
  must(linked == paper.links.size(), "the engine has links that nobody knows");
}

}  // namespace

/// Requests, each after an empty line: "METHOD TARGET", and on the next lines the body.
int answer_toxiproxy(const std::uint8_t* data, std::size_t size) {
  std::string_view left(reinterpret_cast<const char*>(data), size);
  PaperLinks paper;
  Api api(paper, "", 1);
  bool refused = left.empty();
  while (!left.empty()) {
    const auto one = left.substr(0, left.find("\n\n"));
    left.remove_prefix(std::min(left.size(), one.size() + 2));
    const auto line = one.substr(0, one.find('\n'));
    const auto space = line.find(' ');
    http::Request request;
    request.method = line.substr(0, space);
    if (space != std::string_view::npos) request.target = line.substr(space + 1);
    if (line.size() < one.size()) request.body = one.substr(line.size() + 1);
    const auto reply = api.answer(request);
    check_reply(reply);
    check_book(api.book(), paper);
    refused = refused || reply.status >= 400;
  }
  return refused ? 1 : 0;
}

std::vector<std::string> toxiproxy_corpus() {
  std::vector<std::string> texts;
  for (const auto* name : {"lifecycle", "every_toxic", "populate"}) {
    std::ifstream file(std::filesystem::path(LEAFCUTTER_SOURCE_DIR) / "tests/fuzz/corpus/toxiproxy" /
                       (std::string(name) + ".txt"));
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace fuzz
