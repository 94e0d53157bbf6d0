// SPDX-License-Identifier: Apache-2.0
//
// plumb's own kernels as compiled for this back end, and the back end's table of functions.
#include "device/gpu/gpu_device.h"
#include "device/gpu/open.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "plumb_op_list.h"

namespace plumb::device {

#define PLUMB_DECLARE_ENTRY(op) OpEntry op();
namespace PLUMB_KERNEL_SET {
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
PLUMB_DECLARE_ENTRY(occupancy_hog)
PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_DECLARE_ENTRY)
}  // namespace PLUMB_KERNEL_SET
#undef PLUMB_DECLARE_ENTRY

namespace {

#define PLUMB_ENTRY(op) PLUMB_KERNEL_SET::op(),

const Implementation& builtin() {
  static const Implementation table{"plumb",
                                    {PLUMB_FOR_EACH_OP(PLUMB_ENTRY) PLUMB_ENTRY(occupancy_hog)
                                         PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_ENTRY)}};
  return table;
}

#undef PLUMB_ENTRY

int devices() { return PLUMB_GPU::runtime::device_count(); }

std::unique_ptr<Device> open() { return std::make_unique<PLUMB_GPU::GpuDevice>(); }

}  // namespace

const RealBackEnd& PLUMB_GPU::back_end() {
  static constexpr RealBackEnd table{&why_unavailable, &open, &builtin, &rate_kernels, &devices};
  return table;
}

}  // namespace plumb::device
