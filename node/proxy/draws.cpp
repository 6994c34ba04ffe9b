#include "node/proxy/draws.hpp"

#include <cmath>
#include <numbers>
#include <string>

namespace leafcutter::node::proxy {
namespace {

/// A truncated normal with mean >= 0 accepts at least every other draw.
constexpr int most_redraws = 200;

std::string stream_name(const DrawKey& key, std::string_view purpose) {
  std::string name(key.fault);
  name += key.direction == Direction::to_upstream ? "|up|" : "|down|";
  return name += purpose;
}

Duration as_duration(double nanoseconds) {
  if (!(nanoseconds > 0)) return Duration{0};
  const auto limit = static_cast<double>(longest_fault_time.count());
  return nanoseconds >= limit ? longest_fault_time : Duration{static_cast<Duration::rep>(nanoseconds)};
}

double nanoseconds_of(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

Draws::Draws(const DrawKey& key, std::string_view purpose)
    : stream_(base::split_mix(key.seed ^ base::split_mix(base::fnv1a(key.link))), stream_name(key, purpose),
              key.connection) {}

bool Draws::happens(double probability) {
  if (probability <= 0) return false;
  if (probability >= 1) return true;
  return stream_.next() < static_cast<std::uint64_t>(std::ldexp(probability, 64));
}

double Draws::unit() { return (static_cast<double>(stream_.next() >> 11) + 0.5) * 0x1.0p-53; }

/// Box and Muller's, one of the pair.
double Draws::normal() {
  const double radius = std::sqrt(-2 * std::log(unit()));
  return radius * std::cos(2 * std::numbers::pi * unit());
}

Duration Draws::duration(const Distribution& distribution) {
  struct Visitor {
    Draws& draws;
    double operator()(const FixedTime& d) { return nanoseconds_of(d.value); }
    double operator()(const UniformTime& d) {
      return nanoseconds_of(d.min) +
             static_cast<double>(draws.below(static_cast<std::uint64_t>((d.max - d.min).count()) + 1));
    }
    double operator()(const NormalTime& d) {
      if (d.deviation.count() == 0) return nanoseconds_of(d.mean);
      for (int i = 0; i < most_redraws; ++i) {
        const double drawn = nanoseconds_of(d.mean) + nanoseconds_of(d.deviation) * draws.normal();
        if (drawn >= 0) return drawn;
      }
      return nanoseconds_of(d.mean);
    }
    double operator()(const ParetoTime& d) { return nanoseconds_of(d.scale) * std::pow(draws.unit(), -1 / d.shape); }
    double operator()(const ParetoNormalTime& d) {
      const double pareto = (*this)(d.pareto);
      return pareto + (*this)(d.normal);
    }
  };
  return as_duration(std::visit(Visitor{*this}, distribution));
}

}  // namespace leafcutter::node::proxy
