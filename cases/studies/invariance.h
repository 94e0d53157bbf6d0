// SPDX-License-Identifier: Apache-2.0
//
// Measures batch invariance: does a row get the same bits in every batch? This is not a verdict: a
// kernel may choose a split or a code path by the batch's size, as long as each result is within
// its bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

// A batch in which the row differs from the row alone. Describes the first element that differs.
struct BatchDifference {
  std::int64_t size = 0;
  bool last = false;  // true: the row was the last of the batch; false: the first
  std::string tensor, coordinates;
  double alone = 0, in_batch = 0;
  double ulp =
      0;  // floats: steps between both values in representable numbers; integers: difference
  std::int64_t elements = 0;  // number of elements that differ in this batch
  // Norm of the difference / norm of the row; 1 for integers, and if it is not a finite number.
  double share = 0;
};

struct InvarianceResult {
  std::string op, row, platform;
  std::string batch;                     // parameter that was varied: "tokens"
  std::string not_measured;              // reason, if nothing was measured; `sizes` is then empty
  std::vector<std::int64_t> sizes;       // sizes that were tried
  std::vector<BatchDifference> differs;  // at most one for each size
};

// Captured sizes that are tried by default.
std::vector<std::int64_t> default_batch_sizes(const device::Properties& properties);

// Compares the row alone with the row as first and as last of a batch, for every size. The other
// rows of a batch differ from size to size.
InvarianceResult measure_invariance(const OpDefinition& op, const Row& row,
                                    const std::vector<std::int64_t>& sizes,
                                    const RunOptions& options);

}  // namespace plumb::cases
