#include "base/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/unique_fd.hpp"

namespace leafcutter::base {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 6> units = {{{"h", 3'600'000'000'000},
                                        {"m", 60'000'000'000},
                                        {"s", 1'000'000'000},
                                        {"ms", 1'000'000},
                                        {"us", 1'000},
                                        {"ns", 1}}};

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& candidate : candidates) {
    const auto d = distance(word, candidate);
    if (d > std::max<std::size_t>(1, std::max(candidate.size(), word.size()) / 3)) continue;
    if (!best || d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

Expected<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return Error{ErrorCode::bad_input, "\"" + std::string(text) + "\" is not a duration: " + why, {}};
  };
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc::result_out_of_range) return bad("the number is too large");
  if (error != std::errc{} || count < 0) return bad("expected a whole number and a unit, such as 300ms, 5s or 2m");
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& known : units)
    if (unit == known.name) {
      std::int64_t total = 0;
      if (__builtin_mul_overflow(count, known.nanoseconds, &total)) return bad("the number is too large");
      return std::chrono::nanoseconds(total);
    }
  return bad(unit.empty() ? "the unit is missing (ns, us, ms, s, m or h)"
                          : "unknown unit \"" + std::string(unit) + "\" (ns, us, ms, s, m or h)");
}

std::string format_duration(std::chrono::nanoseconds duration) {
  const auto count = duration.count();
  if (count == 0) return "0s";
  for (const auto& unit : units)
    if (count % unit.nanoseconds == 0) return std::to_string(count / unit.nanoseconds) + std::string(unit.name);
  return std::to_string(count) + "ns";
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

Expected<std::string> read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot read " + path, errno);
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read " + path, errno);
    if (n == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Status write_file_atomically(const std::string& path, std::string_view bytes) {
  const auto temporary = path + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return system_error("cannot create " + temporary, errno);
  while (!bytes.empty()) {
    const auto n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot write " + temporary, errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd.get()) != 0) return system_error("cannot sync " + temporary, errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return system_error("cannot rename " + temporary + " to " + path, errno);
  return ok();
}

}  // namespace leafcutter::base
