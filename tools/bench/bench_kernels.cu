// SPDX-License-Identifier: Apache-2.0
//
// Kernels of tools/bench/bench_kernels.h. Any grid; blocks are whole waves, because shuffles name
// all lanes.
#include "device/simt.h"
#include "tools/bench/bench_kernels.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void empty_kernel() {}

PLUMB_KERNEL void barriers_kernel(int times) {
  for (int i = 0; i < times; ++i) block_sync();
}

PLUMB_KERNEL void wave_barriers_kernel(int times) {
  for (int i = 0; i < times; ++i) wave_sync(all_lanes());
}

PLUMB_KERNEL void shuffles_kernel(std::int32_t* data, int times) {
  std::int32_t value = thread_index();
  for (int i = 0; i < times; ++i) value = shuffle_xor(all_lanes(), value, 1, wave_size());
  data[block_index_x() * block_size() + thread_index()] = value;
}

// Each repetition is one load and one store of global memory.
PLUMB_KERNEL void accesses_kernel(std::int32_t* data, int times) {
  volatile std::int32_t* word = data + block_index_x() * block_size() + thread_index();
  for (int i = 0; i < times; ++i) *word = *word ^ 1;
}

plumb_status launch_bench(const BenchLaunch& launch, std::int32_t* data, Stream stream) {
  const LaunchShape shape{launch.blocks, 1, launch.threads, 0};
  switch (launch.kernel) {
    case BenchKernel::empty: return PLUMB_LAUNCH(empty_kernel, shape, stream);
    case BenchKernel::barriers: return PLUMB_LAUNCH(barriers_kernel, shape, stream, launch.times);
    case BenchKernel::wave_barriers:
      return PLUMB_LAUNCH(wave_barriers_kernel, shape, stream, launch.times);
    case BenchKernel::shuffles:
      return PLUMB_LAUNCH(shuffles_kernel, shape, stream, data, launch.times);
    case BenchKernel::accesses:
      return PLUMB_LAUNCH(accesses_kernel, shape, stream, data, launch.times);
  }
  return PLUMB_INVALID_ARGUMENT;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
