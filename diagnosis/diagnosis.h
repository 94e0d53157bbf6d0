// SPDX-License-Identifier: Apache-2.0
//
// The result of a diagnosis: the hypotheses that explain a failure, if any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/match.h"

namespace plumb::cases {

// One hypothesis and how well it explains the failure.
struct Explanation {
  std::string name, stands_for;
  Match match;
};

struct Diagnosis {
  std::vector<Explanation> named;   // empty: no fault fits; several: equally good
  std::optional<Explanation> next;  // the best of the other hypotheses
  // Number of faults that the diagnosis knows, and how many of these it left out to save time.
  std::int64_t known = 0, left_out = 0;
  std::string not_tried;  // why no hypothesis was tried
  // Pattern that the judge recognised in the wrong rows (cases/judge/error_pattern.h).
  std::string pattern;
  // If no value is wrong (a damaged guard zone, a race): likely causes of this kind of failure.
  // Then no hypothesis is tried.
  std::string accident;

  bool names(const std::string& fault) const;  // `fault` alone is named
  bool names_among_others(const std::string& fault) const;
};

// The text of a diagnosis that has nothing to say. Reports for people leave it out.
inline constexpr std::string_view kNoFault = "matches no fault of the library";

// One line: "looks like: ..." or "matches no fault of the library ...".
std::string text_of(const Diagnosis& diagnosis);

}  // namespace plumb::cases
