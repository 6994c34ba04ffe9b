// Good input for each target: what our own encoders write, the ready scenarios, and packets from corpus/.
#pragma once

#include <string>
#include <vector>

namespace fuzz {

std::vector<std::string> trace_corpus();
std::vector<std::string> stream_corpus();
std::vector<std::string> http_corpus();
std::vector<std::string> dns_corpus();
std::vector<std::string> scenario_corpus();
std::vector<std::string> plan_corpus();
std::vector<std::string> lua_corpus();
std::vector<std::string> rule_corpus();
std::vector<std::string> run_corpus();
std::vector<std::string> journal_corpus();
std::vector<std::string> toxiproxy_corpus();

}  // namespace fuzz
