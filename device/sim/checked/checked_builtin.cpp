// SPDX-License-Identifier: Apache-2.0
//
// Table of plumb's own kernels with every memory access checked.
#include "device/device.h"
#include "plumb_op_list.h"

namespace plumb::device {

namespace checked_kernels {
#define PLUMB_DECLARE_ENTRY(op) OpEntry op();
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
#undef PLUMB_DECLARE_ENTRY
}  // namespace checked_kernels

#define PLUMB_CHECKED_ENTRY(op) checked_kernels::op(),
const Implementation& checked_implementation(std::string_view) {
  static const Implementation table{"plumb, checked", {PLUMB_FOR_EACH_OP(PLUMB_CHECKED_ENTRY)}};
  return table;
}
#undef PLUMB_CHECKED_ENTRY

}  // namespace plumb::device
