#include "rig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

namespace leafcutter::node::toxiproxy {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Reply parse_reply(const std::string& bytes) {
  Reply reply;
  const auto end = bytes.find("\r\n\r\n");
  if (bytes.rfind("HTTP/1.1 ", 0) != 0 || end == std::string::npos) {
    ADD_FAILURE() << "no HTTP reply: \"" << bytes << "\"";
    return reply;
  }
  reply.status = std::stoi(bytes.substr(9, 3));
  reply.body = bytes.substr(end + 4);
  std::size_t at = bytes.find("\r\n") + 2;
  while (at < end + 2) {
    const auto line = bytes.substr(at, bytes.find("\r\n", at) - at);
    const auto colon = line.find(": ");
    if (colon != std::string::npos) reply.headers.emplace(lower_case(line.substr(0, colon)), line.substr(colon + 2));
    at += line.size() + 2;
  }
  if (const auto length = reply.header("content-length"); !length.empty()) {
    EXPECT_EQ(length, std::to_string(reply.body.size())) << bytes;
  }
  return reply;
}

}  // namespace

TestJson Reply::json() const {
  auto parsed = TestJson::parse(body, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << "no JSON: " << body;
  return parsed;
}

Reply talk(const std::string& address, const std::string& bytes) {
  auto peer = Peer::dial(address);
  peer.send(bytes);
  return parse_reply(peer.receive_all());
}

std::string ending_soon(Peer& peer) {
  const auto begin = proxy::Clock::now();
  const auto ending = peer.ending();
  return proxy::Clock::now() - begin < 5s ? ending : "too late: " + ending;
}

ApiRig::ApiRig(ServiceOptions options) {
  options.address = "127.0.0.1:0";
  Notes notes;
  auto started = Service::start(std::move(options), notes);
  if (!started) throw std::runtime_error(started.error().text());
  service = std::move(*started);
}

Reply ApiRig::call(const std::string& method, const std::string& target, const std::string& body,
                   const std::vector<std::string>& headers) const {
  std::string bytes = method + " " + target + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
  for (const auto& header : headers) bytes += header + "\r\n";
  if (!body.empty() || method != "GET") bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return talk(address(), bytes + "\r\n" + body);
}

Reply ApiRig::expect(int status, const std::string& method, const std::string& target, const std::string& body) const {
  auto reply = call(method, target, body);
  EXPECT_EQ(reply.status, status) << method << " " << target << " " << body << " -> " << reply.body;
  return reply;
}

std::string ApiRig::proxy(const std::string& name, const std::string& upstream) const {
  const auto reply = expect(201, "POST", "/proxies", proxy_json(name, "127.0.0.1:0", upstream));
  return reply.json().value("listen", "");
}

void ApiRig::toxic(const std::string& proxy, const std::string& type, const std::string& attributes,
                   const std::string& more) const {
  expect(200, "POST", "/proxies/" + proxy + "/toxics",
         R"({"type":")" + type + R"(","attributes":{)" + attributes + "}" + (more.empty() ? "" : "," + more) + "}");
}

void ApiRig::remove_toxic(const std::string& proxy, const std::string& toxic) const {
  expect(204, "DELETE", "/proxies/" + proxy + "/toxics/" + toxic);
}

std::string proxy_json(const std::string& name, const std::string& listen, const std::string& upstream,
                       const std::string& more) {
  return R"({"name":")" + name + R"(","listen":")" + listen + R"(","upstream":")" + upstream + "\"" +
         (more.empty() ? "" : "," + more) + "}";
}

bool listens(const std::string& address) {
  Peer peer;
  return Peer::try_dial(address, peer) == 0;
}

void expect_error(const Reply& reply, int status, const std::string& message) {
  EXPECT_EQ(reply.status, status);
  EXPECT_EQ(reply.body, R"({"error":")" + message + R"(","status":)" + std::to_string(status) + "}\n");
  EXPECT_EQ(reply.header("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(reply.header("x-content-type-options"), "nosniff");
}

void expect_json(const Reply& reply, int status) {
  EXPECT_EQ(reply.status, status) << reply.body;
  EXPECT_EQ(reply.header("content-type"), "application/json");
}

}  // namespace leafcutter::node::toxiproxy
