// SPDX-License-Identifier: Apache-2.0
//
// Simulated platforms with the same wave size run identical kernels. In the smoke and default tiers
// such platforms divide a case's points (conditions under which the case is tried) among
// themselves. Only the first points, one for each fill, run on all of them.
#pragma once

#include <cstddef>
#include <string>

namespace plumb::cases {

struct PlatformShare {
  std::size_t place = 0, platforms = 1;
  bool has(std::size_t number) const { return number % platforms == place; }
};

// The share of one platform. A real or unavailable platform runs all points.
PlatformShare share_of(const std::string& platform);

}  // namespace plumb::cases
