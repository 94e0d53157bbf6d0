// SPDX-License-Identifier: Apache-2.0
//
// The lightning indexer's score of a key, scale * sum_h w[h] * max(0, q[h] . k), and how far a
// correct implementation may be from it. Both logits operations use this code.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/formats/e4m3.h"

namespace plumb::reference {

// Decoded fp8 vectors of one length: vector i is column i. Places of the lowest set bits are kept
// as well, because the rounding error of dot products depends on them. Values have bits from 2^-10
// (fnuz) to 2^8.
struct Fp8Vectors {
  static constexpr int kLeastPlace = -10, kPlaces = 19;

  Eigen::MatrixXd values;
  Eigen::MatrixXf squares;
  Eigen::ArrayXd norm;
  Eigen::ArrayXd finest;  // value of a vector's lowest set bit; infinity if all zero
  // Row p: share of a vector's dimensions whose lowest set bit is 2^(kLeastPlace + p) (`places`) or
  // is below that (`below`). Zeros do not count.
  Eigen::ArrayXXd places, below;

  Fp8Vectors(std::int64_t dim, std::int64_t count);
  void decode(std::int64_t i, const std::uint8_t* codes, Dialect dialect);
};

struct IndexerKeys {
  Fp8Vectors vectors;
  std::vector<double> scales;
  // True: keys are multiplied by their scales before the dot product. False: scores are
  // multiplied.
  bool scaled = false;

  IndexerKeys(std::int64_t dim, std::int64_t count)
      : vectors(dim, count), scales(static_cast<std::size_t>(count)) {}
};

// Keys [first, first + count).
struct KeyRange {
  std::int64_t first = 0, count = 0;
};
// Scores the keys of `range` for one query row, whose heads are the columns of `queries`. Stores
// the scores in row `row` of the estimate, in columns column, column + 1, ...
//
// numerics.accumulator is the format of the sums of dot products, in any order, unless
// numerics.unit is a matrix unit that adds them up. The sum over heads is in fp32, in
// numerics.chains chains.
void score_keys(const Fp8Vectors& queries, const float* weights, const IndexerKeys& keys,
                const KeyRange& range, const Numerics& numerics, std::int64_t row,
                std::int64_t column, Estimate& estimate);

// Estimate for fp32 logits with all values and errors 0.
Estimate empty_logits(std::int64_t rows, std::int64_t columns);

}  // namespace plumb::reference
