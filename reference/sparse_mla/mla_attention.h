// SPDX-License-Identifier: Apache-2.0
//
// Softmax attention of all heads of one query row over its gathered keys, whose first 512
// dimensions are the values.
#pragma once

#include <Eigen/Core>

#include "reference/sparse_mla/mla_problem.h"

namespace plumb::reference {

struct MlaAttention {
  Eigen::MatrixXd queries;   // [key dims, heads]
  Eigen::MatrixXd scores;    // [count, heads]: sm_scale * (q . k)
  Eigen::MatrixXd weights;   // [count, heads]: p = exp(score - max)
  Eigen::MatrixXd out;       // [512, heads]: sum p v / sum p; 0 without keys
  Eigen::VectorXd max, sum;  // [heads]
  Eigen::VectorXd lse;       // [heads]: natural logarithm; -inf without keys
};

using KeyMatrix = Eigen::Map<const Eigen::MatrixXd>;  // [key dims, count]
inline KeyMatrix key_matrix(const GatheredKeys& keys) {
  return KeyMatrix(keys.values.data(), keys.dims, keys.count);
}
inline auto value_matrix(const KeyMatrix& keys) { return keys.topRows(kMlaDim); }

// Reads `attention.queries` and fills all other members.
void attend(const GatheredKeys& keys, double sm_scale, MlaAttention& attention);

}  // namespace plumb::reference
