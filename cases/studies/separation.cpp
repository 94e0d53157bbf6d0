// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/separation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumb::cases {

namespace {

constexpr double kMostChance = 1e-3;

double log_choices(std::int64_t n, std::int64_t k) {
  const auto log_factorial = [](std::int64_t i) { return std::lgamma(static_cast<double>(i) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// Upper bound on the probability that randomly placed failures are separated this well. Counts the
// placements with at most `mixed` observations between two sides of at least kLeastOnEachSide.
// Factor 2: failures may be on either side.
double chance_of_separation(std::int64_t failed, std::int64_t passed, std::int64_t mixed,
                            std::int64_t hypotheses) {
  double choices = 0;
  const std::int64_t least = std::max<std::int64_t>(mixed - (passed - kLeastOnEachSide), 0);
  const std::int64_t most = std::min(mixed, failed - kLeastOnEachSide);
  for (std::int64_t between = least; between <= most; ++between) {
    choices += std::exp(log_choices(mixed, between) - log_choices(failed + passed, failed));
  }
  return 2 * static_cast<double>(hypotheses) * choices;
}

std::string text_with_digits(double value, int digits) {
  return value == std::floor(value) && std::abs(value) < 1e9
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{:.{}g}", value, digits);
}

}  // namespace

std::optional<SeparatingValue> separating_value(std::vector<Observation> all,
                                                std::int64_t hypotheses, double most_mixed) {
  if (std::ranges::any_of(all, [](const auto& one) { return !std::isfinite(one.value); }))
    return {};
  std::ranges::sort(all, {}, &Observation::value);
  if (all.empty() || all.front().failed == all.back().failed) return {};
  // Observations [0, low) have the outcome of the smallest value, [high, end) the other outcome.
  // Between them both outcomes occur.
  const bool low_fails = all.front().failed;
  auto low = std::ranges::find(all, !low_fails, &Observation::failed) - all.begin();
  auto high = std::ssize(all);
  while (all[high - 1].failed != low_fails) --high;
  // Observations with equal values on a border all count as mixed.
  const auto size = std::ssize(all);
  while (low > 0 && low < size && all[low - 1].value == all[low].value) --low;
  while (high < size && high > 0 && all[high].value == all[high - 1].value) ++high;
  const std::int64_t above = size - high, mixed = size - low - above;
  if (std::min<std::int64_t>(low, above) < kLeastOnEachSide) return {};
  if (static_cast<double>(mixed) > most_mixed * static_cast<double>(size)) return {};
  const std::int64_t failed = std::ranges::count(all, true, &Observation::failed);
  if (chance_of_separation(failed, size - failed, mixed, hypotheses) > kMostChance) return {};
  SeparatingValue found{.fails_below = low_fails, .mixed = mixed};
  found.last_failing = low_fails ? all[low - 1].value : all[high].value;
  found.first_passing = low_fails ? all[high].value : all[low - 1].value;
  found.failed = low_fails ? low : above;
  found.passed = low_fails ? above : low;
  return found;
}

SeparatingTexts separating_texts(const SeparatingValue& found) {
  constexpr int kLeastDigits = 3, kMostDigits = 17;
  SeparatingTexts texts;
  for (int digits = kLeastDigits; digits <= kMostDigits; ++digits) {
    texts = {text_with_digits(found.last_failing, digits),
             text_with_digits(found.first_passing, digits)};
    if (texts.last_failing != texts.first_passing) break;
  }
  return texts;
}

}  // namespace plumb::cases
