// SPDX-License-Identifier: Apache-2.0
//
// Candidates of a selection by computed scores. Two scores that are closer than their errors may
// change places. Scores computed from the same bits are equal in every implementation: then the
// smaller id comes first, or (free_ties) either may.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// Candidates of one comparison: experts, or groups of experts. No score is NaN; infinite scores are
// exact.
struct Candidates {
  Estimate score;                       // [rows, count]
  std::vector<std::uint64_t> identity;  // [rows, count]; equal in a row: certainly equal bits
  bool free_ties = false;               // certainly equal candidates may come in any order

  void resize(std::int64_t rows, std::int64_t count);
  // Stores scores [rows, count] from row `row` on. Predictable roundings are added to the values.
  void set_rows(std::int64_t row, const Tracked& scores);
  bool certainly_equal(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // True if a is ranked before b in every correct implementation.
  bool certainly_before(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // score(b) - score(a), and the largest error that a correct kernel can have in this difference.
  double lead(std::int64_t row, std::int64_t a, std::int64_t b) const;
  double error_of_lead(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // Upper bound on P(b ranked before a), given that a's exact score is larger.
  double chance_of_flip(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // The `count` best ids by exact score, descending. Among equal scores the smaller id comes first.
  // If ties are free, ids in `taken` come before the others, in the order of `taken`.
  std::vector<std::int32_t> best(std::int64_t row, std::int64_t count,
                                 const std::vector<std::int32_t>& taken = {}) const;
  // `ids` sorted in the order of best().
  std::vector<std::int32_t> sorted(std::int64_t row, const std::vector<std::int32_t>& ids) const;
};

struct ScoredChoices {
  enum class Rule : std::uint8_t {
    choose,
    first_k,     // ids 0 .. k-1, because fewer than `kept` groups have a score above -infinity
    none,        // ids are -1
    any_expert,  // any experts, also repeated ones
  };

  std::int32_t k = 0;
  bool free_order = false;  // a row's ids may be in any order; else descending score
  Candidates experts;
  // The experts are divided into `groups` equal groups. Only experts of the best `kept` groups can
  // be chosen.
  std::int64_t groups = 1, kept = 1;
  Candidates group;        // [rows, groups]; empty for a single group
  std::vector<Rule> rule;  // [rows]

  std::int64_t rows() const { return experts.score.rows; }
  std::int64_t group_of(std::int64_t expert) const {
    return expert / (experts.score.columns / groups);
  }
  std::vector<std::int32_t> groups_of(const std::vector<std::int32_t>& ids) const;
  // The exact choice of a row. If several are equal, the one nearest to `taken`.
  std::vector<std::int32_t> exact(std::int64_t row,
                                  const std::vector<std::int32_t>& taken = {}) const;
};

}  // namespace plumb::reference
