// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime under the names that device/gpu uses. Each call that fails throws DeviceError
// with the runtime's own name for the call.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "device/gpu/check.h"
#include "device/gpu/launch.h"

namespace plumb::device::cuda {

using NativeStream = cudaStream_t;
using NativeEvent = cudaEvent_t;
using NativeGraph = cudaGraph_t;
using NativeGraphExec = cudaGraphExec_t;
using NativeNode = cudaGraphNode_t;

namespace runtime {

// Must be the process's first call of the runtime, because it sets a variable that is read only
// then.
int device_count();

// Properties of the current device.
Properties query();

// Returns "" or the call that failed and its error. Raises the kernel's limit of dynamic shared
// memory if the launch needs more than 48 KiB.
std::string launch(const void* kernel, const LaunchShape& shape, NativeStream stream,
                   void** arguments);

inline void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  PLUMB_CHECKED(cudaMalloc, &memory, bytes);
  return memory;
}
inline void free(void* memory) { PLUMB_CHECKED(cudaFree, memory); }

// In stream order, without waiting for the device.
inline void* allocate_async(std::size_t bytes, NativeStream stream) {
  void* memory = nullptr;
  PLUMB_CHECKED(cudaMallocAsync, &memory, bytes, stream);
  return memory;
}
inline void free_async(void* memory, NativeStream stream) {
  PLUMB_CHECKED(cudaFreeAsync, memory, stream);
}

inline void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  PLUMB_CHECKED(cudaMallocHost, &memory, bytes);
  return memory;
}
inline void free_pinned(void* memory) { PLUMB_CHECKED(cudaFreeHost, memory); }
inline bool is_pageable(const void* memory) {
  cudaPointerAttributes found{};
  PLUMB_CHECKED(cudaPointerGetAttributes, &found, memory);
  return found.type == cudaMemoryTypeUnregistered;
}

// The runtime finds the direction from the addresses.
inline void copy(void* to, const void* from, std::size_t bytes, NativeStream stream) {
  PLUMB_CHECKED(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDefault, stream);
}
inline void fill(void* to, int value, std::size_t bytes, NativeStream stream) {
  PLUMB_CHECKED(cudaMemsetAsync, to, value, bytes, stream);
}
inline void call_host(void (*function)(void*), void* argument, NativeStream stream) {
  PLUMB_CHECKED(cudaLaunchHostFunc, stream, function, argument);
}

inline NativeStream create_stream() {
  NativeStream stream = nullptr;
  PLUMB_CHECKED(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  return stream;
}
inline void destroy(NativeStream stream) { PLUMB_CHECKED(cudaStreamDestroy, stream); }
inline void synchronize(NativeStream stream) { PLUMB_CHECKED(cudaStreamSynchronize, stream); }
inline void synchronize_device() { PLUMB_CHECKED(cudaDeviceSynchronize); }

inline NativeEvent create_event() {
  NativeEvent event = nullptr;
  PLUMB_CHECKED(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  return event;
}
inline NativeEvent create_timing_event() {
  NativeEvent event = nullptr;
  PLUMB_CHECKED(cudaEventCreate, &event);
  return event;
}
inline double elapsed_milliseconds(NativeEvent from, NativeEvent to) {
  float milliseconds = 0;
  PLUMB_CHECKED(cudaEventElapsedTime, &milliseconds, from, to);
  return milliseconds;
}
inline void destroy(NativeEvent event) { PLUMB_CHECKED(cudaEventDestroy, event); }
inline void record(NativeEvent event, NativeStream stream) {
  PLUMB_CHECKED(cudaEventRecord, event, stream);
}
inline void wait(NativeStream stream, NativeEvent event) {
  PLUMB_CHECKED(cudaStreamWaitEvent, stream, event, 0);
}
inline void synchronize(NativeEvent event) { PLUMB_CHECKED(cudaEventSynchronize, event); }

// Thread-local mode: calls of other threads neither become nodes of the capture nor invalidate it.
inline void begin_capture(NativeStream stream) {
  PLUMB_CHECKED(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
}
inline bool is_captured(NativeStream stream) {
  cudaStreamCaptureStatus status{};
  PLUMB_CHECKED(cudaStreamIsCapturing, stream, &status);
  return status != cudaStreamCaptureStatusNone;
}
inline NativeGraph end_capture(NativeStream stream) {
  NativeGraph graph = nullptr;
  PLUMB_CHECKED(cudaStreamEndCapture, stream, &graph);
  return graph;
}
inline NativeGraphExec instantiate(NativeGraph graph) {
  NativeGraphExec exec = nullptr;
  PLUMB_CHECKED(cudaGraphInstantiate, &exec, graph, 0);
  return exec;
}
inline void launch(NativeGraphExec graph, NativeStream stream) {
  PLUMB_CHECKED(cudaGraphLaunch, graph, stream);
}
inline void destroy(NativeGraph graph) { PLUMB_CHECKED(cudaGraphDestroy, graph); }
inline void destroy(NativeGraphExec graph) { PLUMB_CHECKED(cudaGraphExecDestroy, graph); }

std::vector<NativeNode> nodes(NativeGraph graph);
// `name` is the kernel's mangled name.
GraphNode describe_node(NativeNode node);

}  // namespace runtime
}  // namespace plumb::device::cuda
