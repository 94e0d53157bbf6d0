// SPDX-License-Identifier: Apache-2.0
//
// The table of plumb's own kernels as compiled for the simulator.
#include "device/device.h"
#include "device/gpu/open.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "plumb_op_list.h"

namespace plumb::device {

#define PLUMB_DECLARE_ENTRY(op) OpEntry op();
namespace kernels {
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
PLUMB_DECLARE_ENTRY(occupancy_hog)
PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_DECLARE_ENTRY)
}  // namespace kernels
#undef PLUMB_DECLARE_ENTRY

#define PLUMB_PLAIN_ENTRY(op) kernels::op(),

const Implementation& builtin_implementation(std::string_view platform) {
  if (const RealBackEnd* const back_end = find_real_back_end(platform)) return back_end->builtin();
  static const Implementation table{
      "plumb",
      {PLUMB_FOR_EACH_OP(PLUMB_PLAIN_ENTRY) PLUMB_PLAIN_ENTRY(occupancy_hog)
           PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_PLAIN_ENTRY)}};
  return table;
}

#undef PLUMB_PLAIN_ENTRY

}  // namespace plumb::device
