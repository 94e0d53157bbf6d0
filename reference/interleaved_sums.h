// SPDX-License-Identifier: Apache-2.0
//
// Partial sums of a long fp32 sum in the usual orders of addition. The standard deviation of its
// rounding error follows from them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace plumb::reference {

// Sums of S_k^2 over all partial sums S_k in the usual orders: ascending in one chain, or
// distributed to two or four lanes. Kernels use one of these orders. The distribution of sum S_k^2
// over all orders has a long tail (two lanes that cancel each other may each be far from zero), and
// among a million elements some lie far out in this tail.
//
// The partial sums are known at the ends of short blocks. Inside a block, a sum that goes from a to
// b = a + c in n additions with squares q is a random walk with known ends. Its mean path is
// straight, and the mean of its square is a b + c^2 / 3. The variances of its n partial sums add up
// to n (q - c^2 / n) / 6: on average a sixth of the variance that a free walk has at its end. T is
// an Eigen array of several columns.
template <typename T>
class InterleavedSums {
 public:
  // Adds a block. `changes`: sums of the block's terms by lane (term number modulo 4). `squares`:
  // sum of the squared terms.
  void add_block(std::int64_t terms, const T* changes, const T& squares) {
    const auto n = static_cast<double>(terms);
    const T pairs[2] = {changes[0] + changes[2], changes[1] + changes[3]};
    const T at_pairs[2] = {lanes_[0] + lanes_[2], lanes_[1] + lanes_[3]};
    one_ += walk(n, at_pairs[0] + at_pairs[1], pairs[0] + pairs[1]);
    two_ += walk(n / 2, at_pairs[0], pairs[0]) + walk(n / 2, at_pairs[1], pairs[1]);
    for (int lane = 0; lane < 4; ++lane) {
      four_ += walk(n / 4, lanes_[lane], changes[lane]);
      lanes_[lane] += changes[lane];
    }
    // With two chains, each has half of the additions and half of the squares.
    free_ += squares * (n / 6);
  }
  T one() const { return one_ + free_; }
  T two() const { return two_ + free_ / 2; }
  T four() const { return four_ + free_ / 4; }

 private:
  [[gnu::always_inline]] static inline T walk(double n, const T& a, const T& change) {
    return a * (a + change) * n + change * change * (n / 3 - 1.0 / 6);
  }

  T lanes_[4] = {T::Zero(), T::Zero(), T::Zero(), T::Zero()};
  T one_ = T::Zero(), two_ = T::Zero(), four_ = T::Zero(), free_ = T::Zero();
};

// Terms per block, a multiple of the lanes: at least 8 blocks of a long sum, at most 256 terms.
inline std::int64_t block_length(std::int64_t terms) {
  constexpr std::int64_t kBlocks = 8, kLanes = 4, kLongest = 256;
  return std::clamp(terms / kBlocks / kLanes * kLanes, kLanes, kLongest);
}

// The largest of the sums whose order has at least `chains` chains.
inline double largest_of_orders(int chains, double one, double two, double four) {
  return std::max({chains <= 1 ? one : 0.0, chains <= 2 ? two : 0.0, chains <= 4 ? four : 0.0});
}

}  // namespace plumb::reference
