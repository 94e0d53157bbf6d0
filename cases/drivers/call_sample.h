// SPDX-License-Identifier: Apache-2.0
//
// Some rows of a call that has too many for the reference: an excerpt of its tensors, judged by the
// op's own Problem, made for so few.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cases/tables/given_call.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

// How many rows may be judged, chosen by the seed. Always among them: the first, the last, and
// those on both sides of where the live tokens end.
struct RowChoice {
  std::int64_t most = 0;
  std::uint64_t seed = 0;
  std::int64_t live = 0, tokens = 1;  // of the part of the step
};
std::vector<std::int64_t> choose_rows(const RowChoice& choice, std::int64_t rows);

// A call as it was recorded.
struct RecordedCall {
  const Row& row;  // of its op
  const device::Properties& properties;
  const Problem& problem;
  const plumb_numerics& declared;
  const TensorSet& tensors;
};

// Padding or not follows from the inputs of a recorded call: rows that hold NaN promise nothing.
Step recorded_step(const Problem& problem);

// Rows that can be judged without the others. 0: the op has none.
std::int64_t independent_rows(const RecordedCall& call);
// Nothing for a call that has no more rows than may be judged, or none that are independent: all of
// it has to be judged.
std::optional<Expectations> expect_sample(const RecordedCall& call, const RowChoice& choice);

// What a verdict on these rows reads of large tensors. Looks at no value.
NeededPlaces needed_places(const RecordedCall& call, const RowChoice& choice);

// `tensors`, which are laid out as `whole` for `count` rows, cut down to these rows, laid out as
// `few`. Tensors without rows are shared. What follows from the whole launch (a plan, partial
// results) is left empty.
TensorSet excerpt_of(const TensorSet& few, const TensorSet& whole, const TensorSet& tensors,
                     std::int64_t count, const std::vector<std::int64_t>& rows);

// How many rows of a recorded call are judged.
struct RowSampling {
  std::int64_t most = 0;   // rows; 0: no limit
  double budget = 0;       // ns of one thread for the verdict; 0: no limit
  std::uint64_t seed = 0;  // chooses the rows
};
// 0: all.
std::int64_t rows_to_judge(const RecordedCall& call, const RowSampling& sampling);

// The chance that `judged` of `rows` rows, chosen as above, have none of 1 % of the rows (of one
// row at least).
double chance_of_missing(std::int64_t rows, std::int64_t judged);

}  // namespace plumb::cases
