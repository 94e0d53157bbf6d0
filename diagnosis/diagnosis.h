// SPDX-License-Identifier: Apache-2.0
//
// What a failure looks like: the hypotheses that explain it, or that none does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/match.h"

namespace plumb::cases {

// What one hypothesis is worth.
struct Explanation {
  std::string name, stands_for;
  Match match;
};

struct Diagnosis {
  std::vector<Explanation> named;   // empty: no known pattern; several: they cannot be told apart
  std::optional<Explanation> next;  // the best of the others
  std::int64_t known = 0, left_out = 0;  // faults; of these, not tried for the time it takes
  std::string not_tried;                 // why nobody looked
  // What the judge has recognised in the wrong rows (cases/judge/error_pattern.h).
  std::string pattern;
  // Of a failure in which no value is wrong: what leads to its kind. Nothing else is tried.
  std::string accident;

  bool names(const std::string& fault) const;  // and no other
  bool names_among_others(const std::string& fault) const;
};

// "looks like: ...", "no known pattern ...", in one line.
std::string text_of(const Diagnosis& diagnosis);

}  // namespace plumb::cases
