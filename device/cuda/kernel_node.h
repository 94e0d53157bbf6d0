// SPDX-License-Identifier: Apache-2.0
//
// Names of captured kernels. The runtime knows only kernels of its own copy, but a plug-in brings
// another copy of the runtime or, like Triton, launches through the driver. So the driver is asked.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace plumb::device::cuda {

// The mangled name, "" if the driver has none.
std::string mangled_kernel_name(cudaGraphNode_t node);

}  // namespace plumb::device::cuda
