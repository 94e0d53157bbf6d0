// SPDX-License-Identifier: Apache-2.0
//
// Batch invariance: does a row come out with the same bits whatever it shares a batch with? No
// matter of right or wrong, so no verdict: kernels may choose a split or a path by the batch's
// size, as long as each result is within its bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

// The first element in which the row differs from the same row alone.
struct BatchDifference {
  std::int64_t size = 0;
  bool last = false;  // the row stood at the end of the batch; else at its start
  std::string tensor, coordinates;
  double alone = 0, in_batch = 0;
  double ulp = 0;  // representable numbers between the two; of integers, their difference
  std::int64_t elements = 0;  // how many differ there
  double share = 0;           // of the row that the difference is, by norm; 1 if it is no number
};

struct InvarianceResult {
  std::string op, row, platform;
  std::string batch;                     // the parameter that was varied: "tokens"
  std::string not_measured;              // why not; then the rest is empty
  std::vector<std::int64_t> sizes;       // that were tried
  std::vector<BatchDifference> differs;  // at most one for each size
};

// The captured sizes that are tried if none are asked for.
std::vector<std::int64_t> default_batch_sizes(const device::Properties& properties);

// The same row alone, first and last in a batch of every size. What stands beside it differs from
// size to size.
InvarianceResult measure_invariance(const OpDefinition& op, const Row& row,
                                    const std::vector<std::int64_t>& sizes,
                                    const RunOptions& options);

}  // namespace plumb::cases
