// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_attention.h"

#include <cmath>
#include <limits>

#include "reference/eigen_setup.h"
#include "reference/exp_array.h"

namespace plumb::reference {

void attend(const GatheredKeys& keys, double sm_scale, MlaAttention& attention) {
  fix_eigen_blocking();
  const Eigen::Index heads = attention.queries.cols();
  if (keys.count == 0) {
    attention.scores.resize(0, heads);
    attention.weights.resize(0, heads);
    attention.out.setZero(kMlaDim, heads);
    attention.max.setZero(heads);
    attention.sum.setZero(heads);
    attention.lse.setConstant(heads, -std::numeric_limits<double>::infinity());
    return;
  }
  const KeyMatrix k = key_matrix(keys);
  attention.scores.noalias() = k.transpose() * attention.queries;
  attention.scores *= sm_scale;
  attention.max = attention.scores.colwise().maxCoeff();
  attention.weights = attention.scores.rowwise() - attention.max.transpose();
  exp_in_place(attention.weights.data(), attention.weights.size());
  attention.sum = attention.weights.colwise().sum();
  attention.lse.resize(heads);
  for (Eigen::Index head = 0; head < heads; ++head) {
    attention.lse[head] = attention.max[head] + std::log(attention.sum[head]);
  }
  attention.out.noalias() = value_matrix(k) * attention.weights;
  attention.out.array().rowwise() /= attention.sum.transpose().array();
}

}  // namespace plumb::reference
