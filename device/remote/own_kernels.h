// SPDX-License-Identifier: Apache-2.0
//
// plumb's own kernels in the process that loads a plug-in. In a decode step they compute the ops
// that the plug-in does not have.
#pragma once

#include <plumb/plumb_ops.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "device/background_load/occupancy_hog.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/op_entry.h"
#include "plumb_op_list.h"

namespace plumb::device::remote {

struct OwnKernel {
  std::string_view name;
  std::size_t param_bytes, stream_offset;
  // Offset of a member that is a random number, which may look like a marked address.
  std::size_t seed_offset;
};
inline constexpr auto kNoSeed = static_cast<std::size_t>(-1);
template <class Params>
constexpr std::size_t offset_of_seed() {
  if constexpr (requires(Params params) { params.seed; }) {
    return offsetof(Params, seed);
  } else {
    return kNoSeed;
  }
}
// Ops, placeholder kernels of decode steps, and the occupancy hog.
inline constexpr OwnKernel kOwnKernels[] = {
#define PLUMB_OWN_KERNEL(op)                                                \
  {#op, sizeof(plumb_##op##_params), offsetof(plumb_##op##_params, stream), \
   offset_of_seed<plumb_##op##_params>()},
    PLUMB_FOR_EACH_OP(PLUMB_OWN_KERNEL) PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_OWN_KERNEL)
        PLUMB_OWN_KERNEL(occupancy_hog)
#undef PLUMB_OWN_KERNEL
};
inline constexpr std::size_t kOwnCount = std::size(kOwnKernels);
// kOwnCount: no kernel has this name.
std::size_t position_of_own(std::string_view name);

// Used in the plug-in's process. Calls the kernel, or its planner, on the device of its stream.
enum class OwnKernelCall : std::uint32_t { launch, plan };
plumb_status call_own(OwnKernelCall call, std::size_t own, const void* params);

// Used in the process that judges. `own`: plumb's table of the platform. The result has launchers
// that call the same kernels in the plug-in's process (PluginProcess::call_own).
Implementation launched_there(const Implementation& own);

// The plug-in's entries without the ops `left_out`, and the entries of `own` for all ops that are
// then missing.
Implementation with_own_kernels(const Implementation& plugin, const Implementation& own,
                                const std::set<std::string>& left_out = {});

}  // namespace plumb::device::remote
