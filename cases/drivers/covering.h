// SPDX-License-Identifier: Apache-2.0
//
// Pairwise covering arrays: for every two factors every pair of levels occurs in some point, in
// about as many points as the two widest factors have pairs, instead of their product.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::cases {

// levels[f] is the number of levels of factor f. Each point holds one level per factor. The order
// and choice depend on the seed only; the first points cover the most.
std::vector<std::vector<int>> pairwise_points(const std::vector<int>& levels, std::uint64_t seed);

}  // namespace plumb::cases
