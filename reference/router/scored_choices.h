// SPDX-License-Identifier: Apache-2.0
//
// What a selection by computed scores has to choose from. Two scores that lie closer than their
// errors may change places; scores made of the same bits are equal in every implementation. Then
// the smaller id comes first, or ties are free.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// Candidates of one comparison: experts, or groups of them. No value is NaN; an infinite one is
// exact.
struct Candidates {
  Estimate score;                       // [rows, count]
  std::vector<std::uint64_t> identity;  // [rows, count]; equal within a row: certainly equal bits
  bool free_ties = false;               // of certainly equal ones any comes first

  void resize(std::int64_t rows, std::int64_t count);
  // Scores [rows, count] from this row on, with the roundings that are known beforehand.
  void set_rows(std::int64_t row, const Tracked& scores);
  bool certainly_equal(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // a belongs in front of b in every honest implementation.
  bool certainly_before(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // How much larger b's score is than a's, and how far honest arithmetic may be from that.
  double lead(std::int64_t row, std::int64_t a, std::int64_t b) const;
  double error_of_lead(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // That b comes in front of a at most this often although a's exact score is larger.
  double chance_of_flip(std::int64_t row, std::int64_t a, std::int64_t b) const;
  // The first `count` ids by exact score, descending. Of equal ones those of `taken` come first
  // where ties are free, in the order in which they stand there, then those with a smaller id.
  std::vector<std::int32_t> best(std::int64_t row, std::int64_t count,
                                 const std::vector<std::int32_t>& taken = {}) const;
  // `ids` in this order.
  std::vector<std::int32_t> sorted(std::int64_t row, const std::vector<std::int32_t>& ids) const;
};

struct ScoredChoices {
  enum class Rule : std::uint8_t {
    choose,
    first_k,     // ids 0 .. k-1, because nothing can be chosen
    none,        // ids are -1
    any_expert,  // whatever is an expert, also more than once
  };

  std::int32_t k = 0;
  bool free_order = false;  // of a row's ids; else they stand by descending score
  Candidates experts;
  // The best `kept` of `groups` equal parts of the experts are open to the choice.
  std::int64_t groups = 1, kept = 1;
  Candidates group;        // [rows, groups]; empty for a single group
  std::vector<Rule> rule;  // per row

  std::int64_t rows() const { return experts.score.rows; }
  std::int64_t group_of(std::int64_t expert) const {
    return expert / (experts.score.columns / groups);
  }
  std::vector<std::int32_t> groups_of(const std::vector<std::int32_t>& ids) const;
  // The exact choice of a row, and of several equal ones the one nearest to `taken`.
  std::vector<std::int32_t> exact(std::int64_t row,
                                  const std::vector<std::int32_t>& taken = {}) const;
};

}  // namespace plumb::reference
