// SPDX-License-Identifier: Apache-2.0
//
// plumb's own kernels as compiled for this back end, and the way into it.
#include <vector>

#include "device/gpu/gpu_device.h"
#include "device/gpu/open.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "plumb_op_list.h"

namespace plumb::device {

#define PLUMB_DECLARE_ENTRY(op) plumb_op_entry op();
namespace PLUMB_KERNEL_SET {
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
PLUMB_DECLARE_ENTRY(occupancy_hog)
PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_DECLARE_ENTRY)
}  // namespace PLUMB_KERNEL_SET
#undef PLUMB_DECLARE_ENTRY

namespace {

#define PLUMB_ENTRY(op) PLUMB_KERNEL_SET::op(),

const plumb_implementation& builtin() {
  static const std::vector<plumb_op_entry> entries{PLUMB_FOR_EACH_OP(PLUMB_ENTRY) PLUMB_ENTRY(
      occupancy_hog) PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_ENTRY)};
  static const plumb_implementation table{PLUMB_ABI_VERSION, "plumb", entries.data(),
                                          static_cast<std::int32_t>(entries.size())};
  return table;
}

#undef PLUMB_ENTRY

std::unique_ptr<Device> open() { return std::make_unique<PLUMB_GPU::GpuDevice>(); }

}  // namespace

const RealBackEnd& PLUMB_GPU::back_end() {
  static constexpr RealBackEnd table{&why_unavailable, &open, &builtin, &rate_kernels};
  return table;
}

}  // namespace plumb::device
