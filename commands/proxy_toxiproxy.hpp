// `leafcutter proxy --toxiproxy`: proxies and toxics that Toxiproxy's clients command over HTTP, until a signal comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leafcutter::commands {

struct ToxiproxyOptions {
  std::string address;     ///< of the interface
  std::string config;      ///< a file of proxies; empty: none
  std::string token_file;  ///< empty: the environment is asked
  std::string journal;     ///< empty: none
  std::optional<std::uint64_t> seed;
  unsigned threads = 1;
  bool records = false;  ///< lines of JSON on standard output
};

/// The exit code.
int run_toxiproxy(const ToxiproxyOptions& options);

}  // namespace leafcutter::commands
