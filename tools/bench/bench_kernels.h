// SPDX-License-Identifier: Apache-2.0
//
// Kernels that repeat a single operation, for plumb bench. Compiled plain and checked.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace plumb::device {

enum class BenchKernel { empty, barriers, wave_barriers, shuffles, accesses };

// `times`: repetitions per thread. The kernels get one word of `data` per thread of the grid.
struct BenchLaunch {
  BenchKernel kernel = BenchKernel::empty;
  std::int64_t blocks = 1;
  int threads = 256;
  int times = 1;
};

namespace kernels {
plumb_status launch_bench(const BenchLaunch& launch, std::int32_t* data, Stream stream);
}
namespace checked_kernels {
plumb_status launch_bench(const BenchLaunch& launch, std::int32_t* data, Stream stream);
}

}  // namespace plumb::device
