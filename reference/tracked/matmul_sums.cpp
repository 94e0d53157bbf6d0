// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/matmul_sums.h"

#include <algorithm>
#include <stdexcept>

namespace plumb::reference {

namespace {

constexpr std::int64_t kLanes = 4;

// Terms per block, a multiple of the lanes: at least 8 blocks of a long sum, at most 256 terms.
std::int64_t block_length(std::int64_t terms) {
  constexpr std::int64_t kBlocks = 8, kLongest = 256;
  return std::clamp(terms / kBlocks / kLanes * kLanes, kLanes, kLongest);
}

// Sums of S_k^2 over all partial sums S_k in the usual orders: ascending in one chain, or
// distributed to two or four lanes. Kernels use one of these orders. The distribution of sum S_k^2
// over all orders has a long tail (two lanes that cancel each other may each be far from zero), and
// among a million elements some lie far out in this tail.
//
// The partial sums are known at the ends of short blocks. Inside a block, a sum that goes from a to
// b = a + c in n additions with squares q is a random walk with known ends. Its mean path is
// straight, and the mean of its square is a b + c^2 / 3. The variances of its n partial sums add up
// to n (q - c^2 / n) / 6: on average a sixth of the variance that a free walk has at its end.
class SumsInLanes {
 public:
  using Panel = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  SumsInLanes(std::int64_t rows, std::int64_t columns)
      : one_(Panel::Zero(rows, columns)), two_(one_), four_(one_), lanes_{one_, one_, one_, one_} {}

  // Adds a block. `changes`: sums of the block's terms by lane (term number modulo 4).
  void add_block(std::int64_t terms, const Panel* changes) {
    const auto n = static_cast<double>(terms);
    const Panel pairs[2] = {changes[0] + changes[2], changes[1] + changes[3]};
    const Panel at_pairs[2] = {lanes_[0] + lanes_[2], lanes_[1] + lanes_[3]};
    one_ += walk(n, at_pairs[0] + at_pairs[1], pairs[0] + pairs[1]);
    two_ += walk(n / 2, at_pairs[0], pairs[0]) + walk(n / 2, at_pairs[1], pairs[1]);
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      four_ += walk(n / 4, lanes_[lane], changes[lane]);
      lanes_[lane] += changes[lane];
    }
  }
  // The largest of the sums whose order has at least `chains` chains. `inside`: sum of n q / 6 over
  // the blocks. With two chains, each has half of the additions and half of the squares.
  Panel largest(int chains, const Panel& inside) const {
    Panel most = four_ + inside / 4;
    if (chains <= 2) most = most.max(two_ + inside / 2);
    return chains <= 1 ? most.max(one_ + inside).eval() : most;
  }

 private:
  static Panel walk(double n, const Panel& a, const Panel& change) {
    return a * (a + change) * n + change * change * (n / 3 - 1.0 / 6);
  }

  Panel one_, two_, four_, lanes_[kLanes];
};

}  // namespace

template <class Scalar>
std::vector<double> squared_partial_sums(const MatmulShape& shape, const std::vector<Scalar>& a,
                                         const std::vector<Scalar>& b,
                                         const std::vector<Scalar>& squares, int chains) {
  using Matrix = RowMajorMatrix<Scalar>;
  using Terms = Eigen::Map<const Matrix, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
  if (chains > kLanes) return {};
  std::vector<double> result(squares.size());
  const std::int64_t length = block_length(shape.k);
  shape.for_each_panel([&](std::int64_t batch, std::int64_t row, std::int64_t rows) {
    const Scalar* const left = a.data() + (batch * shape.m + row) * shape.k;
    const Scalar* const right = b.data() + batch * shape.k * shape.n;
    SumsInLanes sums(rows, shape.n);
    Matrix change(rows, shape.n);
    SumsInLanes::Panel changes[kLanes];
    for (std::int64_t begin = 0; begin < shape.k; begin += length) {
      const std::int64_t end = std::min(shape.k, begin + length);
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        const std::int64_t k = begin + lane, terms = std::max<std::int64_t>(0, (end - k + 3) / 4);
        change.noalias() = Terms(left + k, rows, terms, {shape.k, kLanes}) *
                           Terms(right + k * shape.n, terms, shape.n, {kLanes * shape.n, 1});
        changes[lane] = change.template cast<double>();
      }
      sums.add_block(end - begin, changes);
    }
    const auto first = static_cast<std::size_t>((batch * shape.m + row) * shape.n);
    const Eigen::Map<const Matrix> of_panel(&squares[first], rows, shape.n);
    Eigen::Map<RowMajorMatrix<double>>(&result[first], rows, shape.n) =
        sums.largest(chains, of_panel.template cast<double>() * (static_cast<double>(length) / 6));
  });
  return result;
}
template std::vector<double> squared_partial_sums(const MatmulShape&, const std::vector<float>&,
                                                  const std::vector<float>&,
                                                  const std::vector<float>&, int);
template std::vector<double> squared_partial_sums(const MatmulShape&, const std::vector<double>&,
                                                  const std::vector<double>&,
                                                  const std::vector<double>&, int);

MatmulShape matmul_shape(const TrackedSizes& a, const TrackedSizes& b) {
  const auto refuse = [] { throw std::invalid_argument("matmul: sizes that do not fit"); };
  if (a.size() < 2 || b.size() < 2 || (b.size() != 2 && b.size() != a.size())) refuse();
  if (a.back() != b[b.size() - 2]) refuse();
  MatmulShape shape{.m = a[a.size() - 2], .k = a.back(), .n = b.back(), .sizes = a};
  shape.sizes.back() = b.back();
  for (std::size_t d = 0; d + 2 < a.size(); ++d) {
    if (b.size() > 2 && a[d] != b[d]) refuse();
    (b.size() > 2 ? shape.batches : shape.m) *= a[d];
  }
  return shape;
}

}  // namespace plumb::reference
