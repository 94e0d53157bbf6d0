// SPDX-License-Identifier: Apache-2.0
//
// Block b counts the damaged bytes of zone b; its threads take bytes in strides of the block size.
#include "device/gpu/guards.h"
#include "device/simt.h"

namespace plumb::device {

namespace PLUMB_KERNEL_SET {
namespace {

PLUMB_KERNEL void count_damage_kernel(const PLUMB_GPU::GuardZone* zones, std::uint32_t* damaged) {
  const PLUMB_GPU::GuardZone zone = zones[block_index_x()];
  std::uint32_t count = 0;
  for (std::size_t i = static_cast<std::size_t>(thread_index()); i < zone.bytes;
       i += static_cast<std::size_t>(block_size())) {
    count += zone.begin[i] != PLUMB_GPU::kGuardByte;
  }
  if (count != 0) atomic_add(damaged + block_index_x(), count);
}

}  // namespace
}  // namespace PLUMB_KERNEL_SET

plumb_status PLUMB_GPU::count_damage(const GuardZone* zones, int count, std::uint32_t* damaged,
                                     plumb_stream stream) {
  constexpr int kThreads = 128;
  return PLUMB_LAUNCH(PLUMB_KERNEL_SET::count_damage_kernel, (LaunchShape{count, 1, kThreads, 0}),
                      stream, zones, damaged);
}

}  // namespace plumb::device
