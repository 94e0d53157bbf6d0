// SPDX-License-Identifier: Apache-2.0
//
// Pairwise covering arrays: every pair of levels of every two factors occurs in at least one point.
// The number of points is about the product of the two largest level counts, instead of the product
// of all.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::cases {

// levels[f] is the number of levels of factor f. Each point holds one level per factor. Points and
// their order depend on the levels and the seed only. Earlier points tend to cover more new pairs.
std::vector<std::vector<int>> pairwise_points(const std::vector<int>& levels, std::uint64_t seed);

}  // namespace plumb::cases
