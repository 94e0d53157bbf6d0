// SPDX-License-Identifier: Apache-2.0
//
// Finds the value of a number that separates failures from passes: all failures on one side, all
// passes on the other, unless chance explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumb::cases {

// A row or case that failed or passed, with one number that describes it.
struct Observation {
  bool failed = false;
  double value = 0;
};

struct SeparatingValue {
  bool fails_below = false;             // true: failures have small values
  double last_failing = 0;              // the failing value closest to the passes
  double first_passing = 0;             // the passing value closest to the failures
  std::int64_t failed = 0, passed = 0;  // observations on the two sides
  std::int64_t mixed = 0;               // observations between the two values
};

inline constexpr std::int64_t kLeastOnEachSide = 3;  // needed on each side

// nullopt unless: there are at least kLeastOnEachSide failures and passes; at most a share
// `most_mixed` of all observations lies between; and random failures would be separated this well
// by one of `hypotheses` numbers with a probability below 1e-3. Also nullopt if a value is not
// finite.
std::optional<SeparatingValue> separating_value(std::vector<Observation> all,
                                                std::int64_t hypotheses, double most_mixed = 0);

// Both values as text: with at least three digits, and enough to distinguish them.
struct SeparatingTexts {
  std::string last_failing, first_passing;
};
SeparatingTexts separating_texts(const SeparatingValue& found);

}  // namespace plumb::cases
