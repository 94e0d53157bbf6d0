// SPDX-License-Identifier: Apache-2.0
//
// Names of captured kernels, whoever launched them: the runtime knows only those of the copy of it
// that is asked, and a plug-in brings another copy, or launches through the driver as Triton does.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace plumb::device::cuda {

// As the compiler mangled it; "" if the driver has no name for it.
std::string mangled_kernel_name(cudaGraphNode_t node);

}  // namespace plumb::device::cuda
