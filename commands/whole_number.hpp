// Options that are whole numbers of 64 bits. CLI11 takes a negative number, and one that is too large, for another.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace leafcutter::commands {

/// For `->check()`.
inline CLI::Validator whole_number() {
  return {[](std::string& text) -> std::string {
            std::uint64_t value = 0;
            const auto* last = text.data() + text.size();
            const auto [end, error] = std::from_chars(text.data(), last, value);
            if (error == std::errc{} && end == last) return {};
            return "\"" + text + "\" is no whole number from 0 to 18446744073709551615";
          },
          ""};
}

}  // namespace leafcutter::commands
