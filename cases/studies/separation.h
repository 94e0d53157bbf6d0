// SPDX-License-Identifier: Apache-2.0
//
// Which number tells failures from passes: a value with all failures on one side and all passes on
// the other one, if chance cannot explain it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumb::cases {

// Something that failed or passed (a row, a case), with one number that is known of it.
struct Observation {
  bool failed = false;
  double value = 0;
};

struct SeparatingValue {
  bool fails_below = false;             // else above
  double last_failing = 0;              // from here on, away from the passes, all fail
  double first_passing = 0;             // from here on all pass
  std::int64_t failed = 0, passed = 0;  // of these
  std::int64_t mixed = 0;               // others, between the two values
};

inline constexpr std::int64_t kLeastOnEachSide = 3;  // failures, and passes

// Nothing unless there are at least kLeastOnEachSide failures and passes, at most the share
// `most_mixed` of all lies between, and the chance that a random choice of failures would be
// separated as well by one of `hypotheses` numbers is below 1e-3. Values that are not finite:
// nothing.
std::optional<SeparatingValue> separating_value(std::vector<Observation> all,
                                                std::int64_t hypotheses, double most_mixed = 0);

// Both values in a report, with at least three digits and as many as tell one from the other.
struct SeparatingTexts {
  std::string last_failing, first_passing;
};
SeparatingTexts separating_texts(const SeparatingValue& found);

}  // namespace plumb::cases
