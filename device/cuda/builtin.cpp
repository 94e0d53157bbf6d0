// SPDX-License-Identifier: Apache-2.0
//
// plumb's own kernels as compiled for CUDA.
#include <vector>

#include "device/cuda/open.h"
#include "plumb_op_list.h"

namespace plumb::device {

#define PLUMB_DECLARE_ENTRY(op) plumb_op_entry op();
namespace cuda_kernels {
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
PLUMB_DECLARE_ENTRY(occupancy_hog)
}  // namespace cuda_kernels
#undef PLUMB_DECLARE_ENTRY

#define PLUMB_ENTRY(op) cuda_kernels::op(),

const plumb_implementation& cuda::builtin() {
  static const std::vector<plumb_op_entry> entries{PLUMB_FOR_EACH_OP(PLUMB_ENTRY)
                                                       PLUMB_ENTRY(occupancy_hog)};
  static const plumb_implementation table{PLUMB_ABI_VERSION, "plumb", entries.data(),
                                          static_cast<std::int32_t>(entries.size())};
  return table;
}

#undef PLUMB_ENTRY

}  // namespace plumb::device
