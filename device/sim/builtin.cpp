// SPDX-License-Identifier: Apache-2.0
//
// Tables of plumb's own kernels as the simulator has them, plain and checked.
#include <vector>

#include "device/device.h"
#include "device/gpu/open.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "plumb_op_list.h"

namespace plumb::device {

#define PLUMB_DECLARE_ENTRY(op) plumb_op_entry op();
namespace kernels {
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
PLUMB_DECLARE_ENTRY(occupancy_hog)
PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_DECLARE_ENTRY)
}  // namespace kernels
#ifdef PLUMB_CHECKED_KERNELS
namespace checked_kernels {
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_ENTRY)
}
#else
namespace checked_kernels = kernels;
#endif
#undef PLUMB_DECLARE_ENTRY

namespace {

plumb_implementation make_table(const char* name, const std::vector<plumb_op_entry>& entries) {
  return {PLUMB_ABI_VERSION, name, entries.data(), static_cast<std::int32_t>(entries.size())};
}

}  // namespace

#define PLUMB_PLAIN_ENTRY(op) kernels::op(),
#define PLUMB_CHECKED_ENTRY(op) checked_kernels::op(),

const plumb_implementation& builtin_implementation(std::string_view platform) {
  if (const RealBackEnd* const back_end = find_real_back_end(platform)) return back_end->builtin();
  static const std::vector<plumb_op_entry> entries{
      PLUMB_FOR_EACH_OP(PLUMB_PLAIN_ENTRY) PLUMB_PLAIN_ENTRY(occupancy_hog)
          PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_PLAIN_ENTRY)};
  static const plumb_implementation table = make_table("plumb", entries);
  return table;
}

const plumb_implementation& checked_implementation(std::string_view) {
  static const std::vector<plumb_op_entry> entries{PLUMB_FOR_EACH_OP(PLUMB_CHECKED_ENTRY)};
  static const plumb_implementation table = make_table("plumb, checked", entries);
  return table;
}

#undef PLUMB_PLAIN_ENTRY
#undef PLUMB_CHECKED_ENTRY

}  // namespace plumb::device
