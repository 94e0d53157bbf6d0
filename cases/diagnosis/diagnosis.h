// SPDX-License-Identifier: Apache-2.0
//
// What a failure looks like: the hypotheses that explain it, or that none does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cases/diagnosis/match.h"

namespace plumb::cases {

// Those with the larger key first, equal ones in the order that they had. Lists are short.
// (std::stable_sort of libstdc++ 12 calls what C++17 deprecates, which clang does not pass over.)
template <class Range, class Key>
void sort_by_larger(Range&& range, const Key& key) {
  const auto larger = [&](const auto& a, const auto& b) { return key(a) > key(b); };
  for (auto next = range.begin(); next != range.end(); ++next) {
    std::rotate(std::upper_bound(range.begin(), next, *next, larger), next, next + 1);
  }
}

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
  std::string pattern;  // that the judge has recognised in the wrong rows (cases/diagnose.h)

  bool names(const std::string& fault) const;  // and no other
  bool names_among_others(const std::string& fault) const;
};

// "looks like: ...", "no known pattern ...", in one line.
std::string text_of(const Diagnosis& diagnosis);

}  // namespace plumb::cases
