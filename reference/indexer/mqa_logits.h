// SPDX-License-Identifier: Apache-2.0
//
// The lightning indexer's score of a key:  scale * sum_h w[h] * max(0, q[h] . k), and how far an
// honest implementation may be from it. What both logits operations share.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/formats/e4m3.h"

namespace plumb::reference {

// fp8 vectors of one length, decoded: vector i is column i. Beside the values, what the rounding
// error of their dot products depends on: the lowest bits that are set. 2^-10 (fnuz) to 2^8.
struct Fp8Vectors {
  static constexpr int kLeastPlace = -10, kPlaces = 19;

  Eigen::MatrixXd values;
  Eigen::MatrixXf squares;
  Eigen::ArrayXd norm;
  Eigen::ArrayXd finest;  // value of the lowest bit of all; infinity for a vector of zeros
  // Row p: share of a vector's dimensions whose lowest bit is 2^(kLeastPlace + p), or is below
  // that. A zero has none.
  Eigen::ArrayXXd places, below;

  Fp8Vectors(std::int64_t dim, std::int64_t count);
  void decode(std::int64_t i, const std::uint8_t* codes, Dialect dialect);
};

struct IndexerKeys {
  Fp8Vectors vectors;
  std::vector<double> scales;
  bool scaled = false;  // the scales multiply the keys in front of the product, not the scores

  IndexerKeys(std::int64_t dim, std::int64_t count)
      : vectors(dim, count), scales(static_cast<std::size_t>(count)) {}
};

// Scores keys [first, first + count) for one query row, whose heads are `queries`, into columns
// column, column + 1, ... of row `row` of the estimate.
//
// numerics.accumulator is the format of the sums of dot products, in any order, or numerics.unit
// adds them up. The sum over heads is in fp32, in numerics.chains chains.
struct KeyRange {
  std::int64_t first = 0, count = 0;
};
void score_keys(const Fp8Vectors& queries, const float* weights, const IndexerKeys& keys,
                const KeyRange& range, const Numerics& numerics, std::int64_t row,
                std::int64_t column, Estimate& estimate);

// An estimate for fp32 logits: all zero.
Estimate empty_logits(std::int64_t rows, std::int64_t columns);

}  // namespace plumb::reference
