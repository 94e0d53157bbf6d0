// SPDX-License-Identifier: Apache-2.0
//
// The lightning indexer's score of a key, scale * sum_h w[h] * max(0, q[h] . k). All operations
// that compute logits use this code.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/formats/e4m3.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// Appends the numbers of `count` fp8 codes.
void append_fp8(const std::uint8_t* codes, std::int64_t count, Dialect dialect,
                std::vector<double>& numbers);

struct IndexerKeys {
  Tracked vectors;  // [keys, dim]
  Tracked scales;   // [keys, 1], of the scores
};
// `numbers`: [scales.size(), dim]. `scaled`: kernels multiply the keys by their scales, before the
// dot products, and not the scores. The scaled keys are rounded to fp32, and the factors of the
// scores are 1.
IndexerKeys indexer_keys(std::vector<double> numbers, std::vector<double> scales, bool scaled,
                         const Numerics& numerics);

// Keys [first, first + count).
struct KeyRange {
  std::int64_t first = 0, count = 0;
};
// Scores the keys of `range` for one query row. `queries`: the numbers of its `heads` vectors.
// Stores the scores in row `row` of the estimate (of empty_logits), in columns column, column + 1,
// ...
//
// numerics.accumulator is the format of the sums of dot products, in any order, unless
// numerics.unit is a matrix unit that adds them up. The sum over heads is in fp32, in
// numerics.chains chains.
void score_keys(std::vector<double> queries, const float* weights, std::int64_t heads,
                const IndexerKeys& keys, const KeyRange& range, const Numerics& numerics,
                std::int64_t row, std::int64_t column, Estimate& estimate);

// Estimate for fp32 logits with all values and errors 0.
Estimate empty_logits(std::int64_t rows, std::int64_t columns);

}  // namespace plumb::reference
