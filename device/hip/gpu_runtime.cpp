// SPDX-License-Identifier: Apache-2.0
#include "gpu_runtime.h"

#include <memory>

namespace plumb::device::hip::runtime {

namespace {

// "hip-gfx942" for "gfx942:sramecc+:xnack-".
std::string platform_of(const std::string& architecture) {
  return "hip-" + architecture.substr(0, architecture.find(':'));
}

// FP8 format that the platform's own encoders write. They test for gfx942 by name, whose hardware
// converts to e4m3fnuz. gfx90a has no FP8 hardware: its encoders convert in software, to e4m3fn.
Fp8Dialect dialect_of(const std::string& platform) {
  return platform == "hip-gfx942" ? Fp8Dialect::e4m3fnuz : Fp8Dialect::e4m3fn;
}

}  // namespace

Properties query() {
  int device = 0;
  hipDeviceProp_t found{};
  PLUMB_CHECKED(hipGetDevice, &device);
  PLUMB_CHECKED(hipGetDeviceProperties, &found, device);
  Properties result;
  result.platform = platform_of(found.gcnArchName);
  result.fp8 = dialect_of(result.platform);
  result.name = found.name;
  int driver = 0, runtime = 0;
  PLUMB_CHECKED(hipDriverGetVersion, &driver);
  PLUMB_CHECKED(hipRuntimeGetVersion, &runtime);
  result.runtime = "HIP runtime " + std::to_string(runtime) + ", driver " + std::to_string(driver);
  result.wave_size = found.warpSize;
  result.multiprocessors = found.multiProcessorCount;
  result.max_threads_per_block = found.maxThreadsPerBlock;
  result.shared_bytes_per_block = found.sharedMemPerBlock;
  result.memory_bytes = found.totalGlobalMem;
  result.max_grid_x = found.maxGridSize[0];
  result.max_grid_y = found.maxGridSize[1];
  return result;
}

std::string launch(const void* kernel, const LaunchShape& shape, NativeStream stream,
                   void** arguments) {
  const dim3 grid(static_cast<unsigned>(shape.grid_x), static_cast<unsigned>(shape.grid_y));
  const hipError_t error = hipLaunchKernel(kernel, grid, dim3(static_cast<unsigned>(shape.block)),
                                           arguments, shape.dynamic_shared_bytes, stream);
  if (error == hipSuccess) return "";
  forget_last_error();
  return describe(error, "hipLaunchKernel");
}

#ifdef PLUMB_HIP_LAUNCH_HOST_FUNC
void call_host(void (*function)(void*), void* argument, NativeStream stream) {
  PLUMB_CHECKED(hipLaunchHostFunc, stream, function, argument);
}
#else
void call_host(void (*function)(void*), void* argument, NativeStream stream) {
  struct HostFunction {
    void (*function)(void*);
    void* argument;
  };
  hipStreamCaptureStatus status{};
  PLUMB_CHECKED(hipStreamIsCapturing, stream, &status);
  if (status != hipStreamCaptureStatusNone) {
    throw DeviceError(ErrorKind::capture_unsupported,
                      "hipStreamAddCallback: not allowed during capture");
  }
  auto call = std::make_unique<HostFunction>(HostFunction{function, argument});
  const hipStreamCallback_t callback = [](hipStream_t, hipError_t, void* data) {
    const std::unique_ptr<HostFunction> due(static_cast<HostFunction*>(data));
    due->function(due->argument);
  };
  PLUMB_CHECKED(hipStreamAddCallback, stream, callback, call.get(), 0);
  static_cast<void>(call.release());
}
#endif

std::vector<NativeNode> nodes(NativeGraph graph) {
  std::size_t count = 0;
  PLUMB_CHECKED(hipGraphGetNodes, graph, nullptr, &count);
  std::vector<NativeNode> all(count);
  PLUMB_CHECKED(hipGraphGetNodes, graph, all.data(), &count);
  return all;
}

GraphNode describe_node(NativeNode node) {
  hipGraphNodeType type{};
  PLUMB_CHECKED(hipGraphNodeGetType, node, &type);
  switch (type) {
    case hipGraphNodeTypeMemcpy: return {"copy", ""};
    case hipGraphNodeTypeMemset: return {"fill", ""};
    case hipGraphNodeTypeHost: return {"host", ""};
    case hipGraphNodeTypeKernel: break;
    default: return {"other", ""};
  }
  hipKernelNodeParams parameters{};
  PLUMB_CHECKED(hipGraphKernelNodeGetParams, node, &parameters);
  // Kernels that were loaded as a module, not compiled into the program, have no name here.
  const char* const mangled = hipKernelNameRefByPtr(parameters.func, nullptr);
  return {"kernel", mangled ? mangled : ""};
}

}  // namespace plumb::device::hip::runtime

namespace plumb::device::hip {

const RateKernels* rate_kernels() { return nullptr; }

}  // namespace plumb::device::hip
