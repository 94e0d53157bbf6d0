// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/rope.h"

#include <utility>
#include <vector>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

Tracked rotate(Tracked x, std::int64_t first,
               const std::function<const float*(std::int64_t row)>& turns, Rotation rotation) {
  const TrackedSizes sizes = x.sizes();
  const Numerics numerics = *x.node()->numerics;
  const double of_even = rotation == Rotation::forward ? -1 : 1;
  std::vector<double> cosines, sines;
  for (std::int64_t row = 0; row < sizes.front(); ++row) {
    const float* const cos_sin = turns(first + row);
    for (int i = 0; i < kRopeDim; ++i) {
      cosines.push_back(cos_sin[i / 2]);
      sines.push_back((i % 2 == 0 ? of_even : -of_even) * cos_sin[kRopeDim / 2 + i / 2]);
    }
  }
  // Each element of a pair is computed from itself and its partner.
  std::vector<std::int64_t> partners;
  for (std::int64_t i = 0; i < kRopeDim; ++i) partners.push_back(i ^ 1);
  Tracked of_partner = gather(x, 1, partners) * Tracked(std::move(sines), sizes, numerics);
  return std::move(x) * Tracked(std::move(cosines), sizes, numerics) + std::move(of_partner);
}

}  // namespace plumb::reference
