// Real DNS messages, from tests/fuzz/corpus/dns: a comment that says what it is, and its bytes in hexadecimal.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/dns.hpp"

namespace dns_packets {

/// "be ef 81": spaces do not count. Anything else is a mistake in a test.
inline std::string from_hex(std::string_view text) {
  std::string bytes;
  int half = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    const auto digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) throw std::invalid_argument("not hexadecimal: " + std::string(text));
    if (half < 0) {
      half = static_cast<int>(digit);
    } else {
      bytes += static_cast<char>(half << 4 | static_cast<int>(digit));
      half = -1;
    }
  }
  if (half >= 0) throw std::invalid_argument("half a byte: " + std::string(text));
  return bytes;
}

inline std::filesystem::path folder() { return std::filesystem::path(LEAFCUTTER_SOURCE_DIR) / "tests/fuzz/corpus/dns"; }

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::string hex;
  for (std::string line; std::getline(file, line);)
    if (line.substr(0, 1) != "#") hex += line;
  return from_hex(hex);
}

inline std::string packet(const std::string& name) { return read(folder() / (name + ".hex")); }

/// All of them, in the order of their names.
inline std::vector<std::string> all() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> packets;
  packets.reserve(paths.size());
  for (const auto& path : paths) packets.push_back(read(path));
  return packets;
}

inline leafcutter::protocols::DnsName name(const std::string& text) {
  auto found = leafcutter::protocols::DnsName::from_text(text);
  if (!found) throw std::runtime_error(found.error().message);
  return *found;
}

inline leafcutter::protocols::DnsMessage parsed(const std::string& bytes) {
  auto message = leafcutter::protocols::parse_dns(bytes);
  if (!message) throw std::runtime_error(message.error().message);
  return *message;
}

}  // namespace dns_packets
