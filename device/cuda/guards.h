// SPDX-License-Identifier: Apache-2.0
//
// Guard zones in front of and behind every allocation, filled and verified by kernels, so that only
// a damaged one travels to the host.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace plumb::device::cuda {

struct GuardZone {
  std::uint8_t* begin = nullptr;
  std::size_t bytes = 0;
};

inline constexpr std::uint8_t kGuardByte = 0xa5;

// zones: device memory. damaged[i] becomes the number of bytes of zone i that differ.
cudaError_t count_damage(const GuardZone* zones, int count, std::uint32_t* damaged,
                         cudaStream_t stream);

}  // namespace plumb::device::cuda
