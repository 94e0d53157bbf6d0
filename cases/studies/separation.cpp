// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/separation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumb::cases {

namespace {

constexpr std::int64_t kLeastOnEachSide = 3;
constexpr double kMostChance = 1e-3;

// Of all ways to choose the failures, two are separated by one number: the smallest and the
// largest values.
double chance_of_separation(std::int64_t failed, std::int64_t passed, std::int64_t hypotheses) {
  const auto log_factorial = [](std::int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  const double ways =
      log_factorial(failed + passed) - log_factorial(failed) - log_factorial(passed);
  return 2 * static_cast<double>(hypotheses) * std::exp(-ways);
}

}  // namespace

std::optional<SeparatingValue> separating_value(std::vector<Observation> all,
                                                std::int64_t hypotheses, double most_mixed) {
  if (std::ranges::any_of(all, [](const auto& one) { return !std::isfinite(one.value); }))
    return {};
  std::ranges::sort(all, {}, &Observation::value);
  if (all.empty() || all.front().failed == all.back().failed) return {};
  // What lies in front of the first exception, and behind the last one.
  const bool low_fails = all.front().failed;
  auto low = std::ranges::find(all, !low_fails, &Observation::failed) - all.begin();
  auto high = std::ssize(all);
  while (all[high - 1].failed != low_fails) --high;
  // Of equal values all are mixed.
  const auto size = std::ssize(all);
  while (low > 0 && low < size && all[low - 1].value == all[low].value) --low;
  while (high < size && high > 0 && all[high].value == all[high - 1].value) ++high;
  const std::int64_t above = size - high, mixed = size - low - above;
  if (std::min<std::int64_t>(low, above) < kLeastOnEachSide) return {};
  if (static_cast<double>(mixed) > most_mixed * static_cast<double>(size)) return {};
  if (chance_of_separation(low, above, hypotheses) > kMostChance) return {};
  SeparatingValue found{.fails_below = low_fails, .mixed = mixed};
  found.last_failing = low_fails ? all[low - 1].value : all[high].value;
  found.first_passing = low_fails ? all[high].value : all[low - 1].value;
  found.failed = low_fails ? low : above;
  found.passed = low_fails ? above : low;
  return found;
}

std::string separating_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e9
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{:.3g}", value);
}

}  // namespace plumb::cases
