// What is fuzzed: one function for each reader of bytes from outside. Besides not crashing, each must keep a promise; a
// broken one throws std::logic_error with what was broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);  ///< 0: read as something; 1: refused
  std::vector<std::string> (*corpus)();                    ///< good input to begin with
};

const std::vector<Target>& targets();

int answer_toxiproxy(const std::uint8_t* data, std::size_t size);  ///< toxiproxy_target.cpp

}  // namespace fuzz
