// SPDX-License-Identifier: Apache-2.0
//
// Kernels that do one thing many times, for plumb bench. Compiled plain and checked.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace plumb::device {

enum class BenchKernel { empty, barriers, wave_barriers, shuffles, accesses };

// `data`: one word per thread of the grid. `times`: how often each thread does it.
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
