// SPDX-License-Identifier: Apache-2.0
//
// A recorded call may have too many rows for the reference. This file cuts an excerpt of some rows
// out of the call's tensors and judges it with the op's own Problem, made for that few rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cases/tables/given_call.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

// How many rows are judged at most, and the seed that draws them. Four rows are always included:
// the first, the last, and the two on either side of the boundary between live and padded tokens.
struct RowChoice {
  std::int64_t most = 0;
  std::uint64_t seed = 0;
  std::int64_t live = 0, tokens = 1;  // live tokens and all tokens of this part of the step
};
std::vector<std::int64_t> choose_rows(const RowChoice& choice, std::int64_t rows);

// A call of an engine with its recorded tensors.
struct RecordedCall {
  const Row& row;  // parameters of the call's op
  const device::Properties& properties;
  const Problem& problem;
  const plumb_numerics& declared;
  const TensorSet& tensors;
};

// The step that stands for a recorded call. All rows count as live: the inputs themselves say which
// rows are padding, and rows whose inputs are NaN are not compared.
Step recorded_step(const Problem& problem);

// Number of rows of which each can be judged without the others; 0 if the op has no such rows.
std::int64_t independent_rows(const RecordedCall& call);
// Expectations for a sample of the rows. nullopt if the whole call has to be judged: it has no more
// rows than `choice` allows, or the op's rows depend on each other. (A call that writes a cache
// always gets a sample.)
std::optional<Expectations> expect_sample(const RecordedCall& call, const RowChoice& choice);

// The rows that a verdict on the chosen rows reads, by tensor. Tensors that are not listed are
// needed in full, such as all integer tensors. Computed from shapes alone, so that other rows need
// not be loaded.
NeededPlaces needed_places(const RecordedCall& call, const RowChoice& choice);

// Copies `rows` out of `tensors`. `whole` is the layout of `tensors` for `count` rows, `few` the
// layout of the result. Tensors without a row dimension are shared. Tensors that depend on the
// whole launch (a plan, partial results) are left empty.
TensorSet excerpt_of(const TensorSet& few, const TensorSet& whole, const TensorSet& tensors,
                     std::int64_t count, const std::vector<std::int64_t>& rows);

// Limits on how many rows of a recorded call are judged.
struct RowSampling {
  std::int64_t most = 0;   // rows; 0: no limit
  double budget = 0;       // ns of one thread for the verdict; 0: no limit
  std::uint64_t seed = 0;  // chooses the rows
};
// How many rows to judge; 0: all of them.
std::int64_t rows_to_judge(const RecordedCall& call, const RowSampling& sampling);

// Probability that a sample of `judged` of `rows` rows misses a defect that hits 1 % of the rows
// (at least one row).
double chance_of_missing(std::int64_t rows, std::int64_t judged);

}  // namespace plumb::cases
