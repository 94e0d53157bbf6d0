// SPDX-License-Identifier: Apache-2.0
//
// Driver functions are looked up through the runtime, so that nothing has to be linked with
// libcuda.
#include "device/cuda/kernel_node.h"

#include <cuda.h>

#include "device/gpu/check.h"

namespace plumb::device::cuda {

namespace {

// nullptr if the driver is older than the function.
template <typename Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12030;  // CUDA 12.3 is the first with kernel names
  PLUMB_CHECKED(cudaGetDriverEntryPointByVersion, name, &found, kVersion, cudaEnableDefault,
                &result);
#else
  PLUMB_CHECKED(cudaGetDriverEntryPoint, name, &found, cudaEnableDefault, &result);
#endif
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function*>(found) : nullptr;
}

using GetParams = CUresult(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
using FunctionName = CUresult(const char**, CUfunction);
using KernelName = CUresult(const char**, CUkernel);

}  // namespace

std::string mangled_kernel_name(cudaGraphNode_t node) {
  static GetParams* const get_params = driver_function<GetParams>("cuGraphKernelNodeGetParams");
  static FunctionName* const function_name = driver_function<FunctionName>("cuFuncGetName");
  static KernelName* const kernel_name = driver_function<KernelName>("cuKernelGetName");
  CUDA_KERNEL_NODE_PARAMS parameters{};
  const char* name = nullptr;
  if (!get_params || get_params(node, &parameters) != CUDA_SUCCESS) return "";
  if (parameters.func && function_name) {
    if (function_name(&name, parameters.func) != CUDA_SUCCESS) return "";
  } else if (parameters.kern && kernel_name) {
    if (kernel_name(&name, parameters.kern) != CUDA_SUCCESS) return "";
  }
  return name ? name : "";
}

}  // namespace plumb::device::cuda
