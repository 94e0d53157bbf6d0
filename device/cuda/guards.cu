// SPDX-License-Identifier: Apache-2.0
//
// Block b counts the damaged bytes of zone b; its threads stride over the zone.
#include "device/cuda/guards.h"

namespace plumb::device::cuda {

namespace {

__global__ void count_damage_kernel(const GuardZone* zones, std::uint32_t* damaged) {
  const GuardZone zone = zones[blockIdx.x];
  std::uint32_t count = 0;
  for (std::size_t i = threadIdx.x; i < zone.bytes; i += blockDim.x) {
    count += zone.begin[i] != kGuardByte;
  }
  if (count != 0) atomicAdd(damaged + blockIdx.x, count);
}

}  // namespace

cudaError_t count_damage(const GuardZone* zones, int count, std::uint32_t* damaged,
                         cudaStream_t stream) {
  const cudaError_t cleared =
      cudaMemsetAsync(damaged, 0, sizeof(std::uint32_t) * static_cast<std::size_t>(count), stream);
  if (cleared != cudaSuccess || count == 0) return cleared;
  count_damage_kernel<<<static_cast<unsigned>(count), 128, 0, stream>>>(zones, damaged);
  return cudaGetLastError();
}

}  // namespace plumb::device::cuda
