// SPDX-License-Identifier: Apache-2.0
//
// Kernel names as graph nodes of a real device return them. The mangled names were produced by
// compilers from kernels of this repository.
#include <gtest/gtest.h>
#include <plumb/ops/metadata.h>

#include "device/gpu/kernel_name.h"

namespace short_kernel_name_test {

using plumb::device::short_kernel_name;

TEST(ShortKernelName, IsWhatTheLauncherSpelled) {
  EXPECT_EQ(short_kernel_name("_ZN5plumb6device11hip_kernels13attend_kernelENS1_7MlaCallE"),
            "attend_kernel");
  EXPECT_EQ(
      short_kernel_name("_ZN5plumb6device12cuda_kernels12_GLOBAL__N_114mhc_fused_postE21plumb_"
                        "mhc_post_params"),
      "mhc_fused_post");
}

// These mangled names contain a return type, or parentheses in the middle.
TEST(ShortKernelName, KeepsTemplateArguments) {
  EXPECT_EQ(short_kernel_name("_ZN5plumb6device11hip_kernels12_GLOBAL__N_115pack_seq_kernelItEEv21"
                              "plumb_pack_seq_params"),
            "pack_seq_kernel<unsigned short>");
  EXPECT_EQ(short_kernel_name("_ZN1a12_GLOBAL__N_16selectILi4ELi64ENS0_1PEEEvT1_"),
            "select<4, 64, a::(anonymous namespace)::P>");
}

// Unmangled names stay, also if they could be mangled types: "i" demangles to "int".
TEST(ShortKernelName, LeavesWhatIsNotMangled) {
  for (const char* name : {"", "i", "f", "rms_norm_kernel", "_Zgarbage"}) {
    EXPECT_EQ(short_kernel_name(name), name);
  }
}

}  // namespace short_kernel_name_test
