// SPDX-License-Identifier: Apache-2.0
//
// Sums over the terms of matrix products of plain numbers. Tracked matrix products derive their
// errors from them.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/eigen_setup.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

template <class Scalar>
using RowMajorMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// [batches, m, k] x [batches, k, n].
struct MatmulShape {
  std::int64_t batches = 1, m = 1, k = 1, n = 1;
  TrackedSizes sizes;  // sizes of the result

  // Calls visit(batch, first row, rows) for panels of a fixed size, so that sums have the same
  // order on any number of cores.
  void for_each_panel(const auto& visit) const {
    constexpr std::int64_t kPanel = 64;
    const std::int64_t panels = (m + kPanel - 1) / kPanel;
    fix_eigen_blocking();
    parallel_for(batches * panels, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t row = i % panels * kPanel;
        visit(i / panels, row, std::min(kPanel, m - row));
      }
    });
  }
  template <class Scalar>
  std::vector<Scalar> product(const std::vector<Scalar>& a, const std::vector<Scalar>& b) const {
    using Matrix = RowMajorMatrix<Scalar>;
    std::vector<Scalar> result(static_cast<std::size_t>(batches * m * n));
    for_each_panel([&](std::int64_t batch, std::int64_t row, std::int64_t rows) {
      const Eigen::Map<const Matrix> left(a.data() + (batch * m + row) * k, rows, k);
      const Eigen::Map<const Matrix> right(b.data() + batch * k * n, k, n);
      Eigen::Map<Matrix>(result.data() + (batch * m + row) * n, rows, n).noalias() = left * right;
    });
    return result;
  }
};

// Throws std::invalid_argument for sizes that do not fit.
MatmulShape matmul_shape(const TrackedSizes& a, const TrackedSizes& b);

// For each element, the sum of S_k^2 over all partial sums S_k of its terms, in the usual order
// with at least `chains` chains for which it is largest. `squares`: sum of the squared terms of
// each element. Empty for more than four chains. Scalar is float or double.
template <class Scalar>
std::vector<double> squared_partial_sums(const MatmulShape& shape, const std::vector<Scalar>& a,
                                         const std::vector<Scalar>& b,
                                         const std::vector<Scalar>& squares, int chains);

}  // namespace plumb::reference
