#include "corpus.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "protocols/event.hpp"
#include "protocols/http.hpp"
#include "protocols/stream.hpp"
#include "scenarios/plan.hpp"
#include "tests/protocols/dns_packets.hpp"

namespace fuzz {

using namespace leafcutter;

std::vector<std::string> trace_corpus() {
  protocols::Event request;
  request.lane = "shop -> broker";
  request.seq = 3;
  request.clock = {{"shop", 7}, {"shop -> broker", 3}};
  request.at = std::chrono::milliseconds(12);
  request.kind = "request";
  request.attrs = {{"path", "/announce"}, {"json", {{"id", "order-1"}}}, {"reply", {{"status", 201}}}};
  protocols::Event end;
  end.lane = "leaf";
  end.seq = 1;
  end.kind = "leaf.end";
  end.unknown = {{"later", {1, -2, 3.5, nullptr, true}}};
  return {protocols::encode_chunk({request}), protocols::encode_chunk({request, end}),
          protocols::encode_chunk({request}) + protocols::encode_chunk({end}), protocols::encode_chunk({})};
}

std::vector<std::string> stream_corpus() {
  return {protocols::encode(protocols::BatchHeader{"0a1b2c3d/1/7#1", 64, 32, false}),
          protocols::encode(protocols::BatchHeader{"x", 0, 1, true}),
          protocols::encode(protocols::Ack{"0a1b2c3d/1/7#1", 96, true})};
}

std::vector<std::string> http_corpus() {
  return {
      protocols::format_request("POST", "/orders?x=1", "shop", {{"Content-Type", "application/json"}},
                                "{\"id\":\"order-1\"}"),
      "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n123\r\n0\r\nTrailer: yes\r\n\r\n",
      "HTTP/1.0 200 OK\r\n\r\nuntil the end",
      "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};
}

std::vector<std::string> dns_corpus() { return dns_packets::all(); }

std::vector<std::string> scenario_corpus() {
  std::vector<std::string> texts;
  for (const auto* name : {"outbox", "double-charge", "config-save", "redis", "postgres"}) {
    std::ifstream file(std::filesystem::path(LEAFCUTTER_SOURCE_DIR) / "scenarios/library" / name / "scenario.yaml");
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

std::vector<std::string> plan_corpus() {
  scenarios::Plan plan;
  plan.faults.push_back({"errno", {"shop", "write", "data:orders.log"}, 2, {{"error", "EIO"}}});
  plan.faults.push_back({"latency", {"shop -> broker", "request", "POST /announce"}, 1, {{"for", "2s"}}});
  plan.variant = "fixed";
  return {protocols::pack(scenarios::to_value(plan)), protocols::pack(scenarios::to_value(scenarios::Plan{}))};
}

std::vector<std::string> lua_corpus() {
  return {"status == 201",
          "json.id:sub(1, 5) == 'order' and #json.id < 20",
          "(function() local n = 0 for i = 1, 10 do n = n + i end return n end)()",
          "table.concat({1, 2, 3}, ',') .. string.rep('x', 10)",
          "math.max(status, 3) // 2",
          "string.format('%d', status)"};
}

std::vector<std::string> rule_corpus() {
  return {"fsync=EIO path=/var/db/*.wal #2",
          "pwrite64=short:4k path=\"a \\\"file\\\"\" size=4k.. offset=..1M every 3",
          "connect=ETIMEDOUT:2s peer=broker:http probability=12.5% service=broker",
          "open=EMFILE flags=O_CREAT|O_TRUNC object=file first 2",
          "write=hold:5s until=\"ready service=broker\" after=\"reply from=shop status=2xx path=/^.o/\"",
          "read=corrupt:17,3 from 7",
          "write=no-space:1048576,EDQUOT",
          "nanosleep=skip",
          "latency:5ms,uniform,2ms each=piece caller=shop after=\"reply from=shop\" every 2",
          "latency:5ms message=2..3 callee=broker from 2",
          "bandwidth:10k,,link flow=to-caller after-bytes=4k probability=25% #3",
          "partition:2s,to-second until=\"ready service=broker\" after=exit",
          "duplicate:,0.5 nth=3 port=main first 2"};
}

std::vector<std::string> run_corpus() {
  std::vector<std::string> texts;
  for (const auto* name : {"first.yaml", "first.json", "second.yaml", "datagrams.yaml"}) {
    std::ifstream file(std::filesystem::path(LEAFCUTTER_SOURCE_DIR) / "tests/fuzz/corpus/run" / name);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

std::vector<std::string> journal_corpus() {
  const std::string start =
      R"({"type":"run-started","journal_version":1,"seed":7,"config_sha256":"ab","endpoints":[{"listen":"udp://127.0.0.1:1","proxy":"u"},{"listen":"tcp://127.0.0.1:1","proxy":"a"}]})"
      "\n";
  const std::string decisions =
      R"({"type":"accepted","link":"a","connection":1,"detail":"127.0.0.1:9"})"
      "\n"
      R"({"type":"passed-over","link":"a","connection":1,"direction":"to-client","fault":"f","activation":2})"
      "\n"
      R"({"type":"struck","link":"u","connection":1,"direction":"to-upstream","fault":"f","activation":1,"operation":3,"offset":0,"bytes":9,"delay_ms":1.5})"
      "\n";
  return {start, start + decisions, start + decisions + "{\"type\":\"run-completed\",\"dropped_records\":3}\n"};
}

}  // namespace fuzz
