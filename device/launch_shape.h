// SPDX-License-Identifier: Apache-2.0
//
// Blocks, threads and dynamic shared memory of one launch, for every back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace plumb::device {

struct LaunchShape {
  std::int64_t grid_x = 1, grid_y = 1;
  int block = 1;
  std::size_t dynamic_shared_bytes = 0;
};

// Whether all sizes fit int32. For kernels that compute indices below these sizes in 32 bits.
template <class... Sizes>
constexpr bool fits_int(Sizes... sizes) {
  return (std::in_range<std::int32_t>(sizes) && ...);
}

}  // namespace plumb::device
