// SPDX-License-Identifier: Apache-2.0
#include "gpu_runtime.h"

#include <cstdlib>

#include "device/cuda/kernel_node.h"

namespace plumb::device::cuda::runtime {

// By default a kernel is loaded at its first launch. Loading may wait for the whole device, and may
// happen in one thread while another one captures. So all kernels are loaded at the start. The
// runtime reads the variable at its first call only. A value that the user has set is kept.
int device_count() {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  PLUMB_CHECKED(cudaGetDeviceCount, &count);
  return count;
}

Properties query() {
  int device = 0;
  cudaDeviceProp found{};
  PLUMB_CHECKED(cudaGetDevice, &device);
  PLUMB_CHECKED(cudaGetDeviceProperties, &found, device);
  Properties result;
  result.platform = "cuda-sm" + std::to_string(found.major) + std::to_string(found.minor);
  result.name = found.name;
  int driver = 0, runtime = 0;
  PLUMB_CHECKED(cudaDriverGetVersion, &driver);
  PLUMB_CHECKED(cudaRuntimeGetVersion, &runtime);
  result.runtime = "CUDA runtime " + std::to_string(runtime) + ", driver " + std::to_string(driver);
  result.wave_size = found.warpSize;
  result.multiprocessors = found.multiProcessorCount;
  result.max_threads_per_block = found.maxThreadsPerBlock;
  result.shared_bytes_per_block = found.sharedMemPerBlockOptin;
  result.memory_bytes = found.totalGlobalMem;
  result.max_grid_x = found.maxGridSize[0];
  result.max_grid_y = found.maxGridSize[1];
  return result;
}

namespace {

// A kernel may use 48 KB of shared memory, static plus dynamic, unless the limit of the kernel is
// raised. The limit is raised to the device's maximum at once and stays there. So neither earlier
// launches nor other threads decide whether a launch succeeds.
cudaError_t permit_shared_memory(const void* kernel, std::size_t dynamic_bytes) {
  cudaFuncAttributes known{};
  cudaError_t error = cudaFuncGetAttributes(&known, kernel);
  if (error != cudaSuccess) return error;
  if (dynamic_bytes <= static_cast<std::size_t>(known.maxDynamicSharedSizeBytes)) return error;
  int device = 0, most = 0;
  error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              most - static_cast<int>(known.sharedSizeBytes));
}

}  // namespace

std::string launch(const void* kernel, const LaunchShape& shape, NativeStream stream,
                   void** arguments) {
  const auto failed = [](cudaError_t error, const char* call) {
    forget_last_error();
    return describe(error, call);
  };
  if (shape.dynamic_shared_bytes > 0) {
    const cudaError_t error = permit_shared_memory(kernel, shape.dynamic_shared_bytes);
    if (error != cudaSuccess) return failed(error, "dynamic shared memory");
  }
  const dim3 grid(static_cast<unsigned>(shape.grid_x), static_cast<unsigned>(shape.grid_y));
  const cudaError_t error = cudaLaunchKernel(kernel, grid, dim3(static_cast<unsigned>(shape.block)),
                                             arguments, shape.dynamic_shared_bytes, stream);
  return error == cudaSuccess ? "" : failed(error, "cudaLaunchKernel");
}

std::vector<NativeNode> nodes(NativeGraph graph) {
  std::size_t count = 0;
  PLUMB_CHECKED(cudaGraphGetNodes, graph, nullptr, &count);
  std::vector<NativeNode> all(count);
  PLUMB_CHECKED(cudaGraphGetNodes, graph, all.data(), &count);
  return all;
}

GraphNode describe_node(NativeNode node) {
  cudaGraphNodeType type{};
  PLUMB_CHECKED(cudaGraphNodeGetType, node, &type);
  switch (type) {
    case cudaGraphNodeTypeMemcpy: return {"copy", ""};
    case cudaGraphNodeTypeMemset: return {"fill", ""};
    case cudaGraphNodeTypeHost: return {"host", ""};
    case cudaGraphNodeTypeKernel: break;
    default: return {"other", ""};
  }
  return {"kernel", mangled_kernel_name(node)};
}

}  // namespace plumb::device::cuda::runtime
