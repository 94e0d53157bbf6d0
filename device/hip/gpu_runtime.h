// SPDX-License-Identifier: Apache-2.0
//
// The HIP runtime under the names that device/gpu uses. Each call that fails throws DeviceError
// with the runtime's own name for the call.
#pragma once

#include <hip/hip_runtime_api.h>

#include <string>
#include <vector>

#include "device/gpu/check.h"
#include "device/gpu/launch.h"

namespace plumb::device::hip {

using NativeStream = hipStream_t;
using NativeEvent = hipEvent_t;
using NativeGraph = hipGraph_t;
using NativeGraphExec = hipGraphExec_t;
using NativeNode = hipGraphNode_t;

namespace runtime {

// Called before all other calls of the runtime in a process.
inline int device_count() {
  int count = 0;
  PLUMB_CHECKED(hipGetDeviceCount, &count);
  return count;
}

// Properties of the current device.
Properties query();

// Returns "" or the call that failed and its error. HIP kernels need no permission for dynamic
// shared memory.
std::string launch(const void* kernel, const LaunchShape& shape, NativeStream stream,
                   void** arguments);

inline void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  PLUMB_CHECKED(hipMalloc, &memory, bytes);
  return memory;
}
inline void free(void* memory) { PLUMB_CHECKED(hipFree, memory); }

// In stream order, without waiting for the device.
inline void* allocate_async(std::size_t bytes, NativeStream stream) {
  void* memory = nullptr;
  PLUMB_CHECKED(hipMallocAsync, &memory, bytes, stream);
  return memory;
}
inline void free_async(void* memory, NativeStream stream) {
  PLUMB_CHECKED(hipFreeAsync, memory, stream);
}

inline void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  PLUMB_CHECKED(hipHostMalloc, &memory, bytes, hipHostMallocDefault);
  return memory;
}
inline void free_pinned(void* memory) { PLUMB_CHECKED(hipHostFree, memory); }
// The runtime has no attributes for pageable memory: the query fails.
inline bool is_pageable(const void* memory) {
  unsigned type = 0;
  if (hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, const_cast<void*>(memory)) ==
      hipSuccess) {
    return false;
  }
  forget_last_error();
  return true;
}

// The runtime finds the direction from the addresses. It waits itself if memory is pageable.
inline void copy(void* to, const void* from, std::size_t bytes, NativeStream stream) {
  PLUMB_CHECKED(hipMemcpyAsync, to, from, bytes, hipMemcpyDefault, stream);
}
inline void fill(void* to, int value, std::size_t bytes, NativeStream stream) {
  PLUMB_CHECKED(hipMemsetAsync, to, value, bytes, stream);
}
// ROCm 5.2 declares hipLaunchHostFunc but does not define it. A stream callback is used instead,
// and a call during capture throws.
void call_host(void (*function)(void*), void* argument, NativeStream stream);

inline NativeStream create_stream() {
  NativeStream stream = nullptr;
  PLUMB_CHECKED(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking);
  return stream;
}
inline void destroy(NativeStream stream) { PLUMB_CHECKED(hipStreamDestroy, stream); }
inline void synchronize(NativeStream stream) { PLUMB_CHECKED(hipStreamSynchronize, stream); }
inline void synchronize_device() { PLUMB_CHECKED(hipDeviceSynchronize); }

inline NativeEvent create_event() {
  NativeEvent event = nullptr;
  PLUMB_CHECKED(hipEventCreateWithFlags, &event, hipEventDisableTiming);
  return event;
}
inline NativeEvent create_timing_event() {
  NativeEvent event = nullptr;
  PLUMB_CHECKED(hipEventCreate, &event);
  return event;
}
inline double elapsed_milliseconds(NativeEvent from, NativeEvent to) {
  float milliseconds = 0;
  PLUMB_CHECKED(hipEventElapsedTime, &milliseconds, from, to);
  return static_cast<double>(milliseconds);
}
inline void destroy(NativeEvent event) { PLUMB_CHECKED(hipEventDestroy, event); }
inline void record(NativeEvent event, NativeStream stream) {
  PLUMB_CHECKED(hipEventRecord, event, stream);
}
inline void wait(NativeStream stream, NativeEvent event) {
  PLUMB_CHECKED(hipStreamWaitEvent, stream, event, 0);
}
inline void synchronize(NativeEvent event) { PLUMB_CHECKED(hipEventSynchronize, event); }

// Thread-local mode: calls of other threads neither become nodes of the capture nor invalidate it.
inline void begin_capture(NativeStream stream) {
  PLUMB_CHECKED(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
}
inline bool is_captured(NativeStream stream) {
  hipStreamCaptureStatus status{};
  PLUMB_CHECKED(hipStreamIsCapturing, stream, &status);
  return status != hipStreamCaptureStatusNone;
}
inline NativeGraph end_capture(NativeStream stream) {
  NativeGraph graph = nullptr;
  PLUMB_CHECKED(hipStreamEndCapture, stream, &graph);
  return graph;
}
inline NativeGraphExec instantiate(NativeGraph graph) {
  NativeGraphExec exec = nullptr;
  PLUMB_CHECKED(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  return exec;
}
inline void launch(NativeGraphExec graph, NativeStream stream) {
  PLUMB_CHECKED(hipGraphLaunch, graph, stream);
}
inline void destroy(NativeGraph graph) { PLUMB_CHECKED(hipGraphDestroy, graph); }
inline void destroy(NativeGraphExec graph) { PLUMB_CHECKED(hipGraphExecDestroy, graph); }

std::vector<NativeNode> nodes(NativeGraph graph);
// `name` is the kernel's mangled name.
GraphNode describe_node(NativeNode node);

}  // namespace runtime
}  // namespace plumb::device::hip
