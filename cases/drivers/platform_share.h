// SPDX-License-Identifier: Apache-2.0
//
// Simulated platforms whose waves have one size run the same kernels. In the default tier they
// divide among themselves what would repeat.
#pragma once

#include <cstddef>
#include <string>

namespace plumb::cases {

struct PlatformShare {
  std::size_t place = 0, platforms = 1;
  bool has(std::size_t number) const { return number % platforms == place; }
};

// All of it, if the platform is a real device or not to be had.
PlatformShare share_of(const std::string& platform);

}  // namespace plumb::cases
