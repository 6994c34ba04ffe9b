// The entry that libFuzzer calls; the build names the target.
#include <cstring>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto& target : fuzz::targets())
    if (std::strcmp(target.name, LEAFCUTTER_FUZZ_TARGET) == 0) target.run(data, size);
  return 0;
}
