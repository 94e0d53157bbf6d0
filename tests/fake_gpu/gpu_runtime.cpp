// SPDX-License-Identifier: Apache-2.0
#include "gpu_runtime.h"

#include <cstdlib>
#include <cstring>

namespace plumb::device::fake {

namespace {

// Throws if the ledger wants `call` to fail, as PLUMB_CHECKED does around a vendor's call.
void enter(const char* call) {
  check(ledger().failing_call == call ? ledger().failure : kSuccess, call);
}

template <typename State>
State* create(const char* call, int& count) {
  enter(call);
  ++count;
  return new State;
}

template <typename State>
void release(const char* call, State* state, int& count) {
  enter(call);
  --count;
  delete state;
}

}  // namespace

Ledger& ledger() {
  static Ledger one;
  return one;
}

ErrorKind error_kind_of(NativeError error) {
  switch (error) {
    case NativeError::out_of_memory: return ErrorKind::out_of_memory;
    case NativeError::capture: return ErrorKind::capture_invalid;
    default: return ErrorKind::other;
  }
}

// As in the runtime of ROCm 5, an error may have a name only.
const char* error_text(NativeError error) {
  return error == NativeError::no_device ? error_name(error) : "as the test wanted";
}

const char* error_name(NativeError error) {
  return error == NativeError::out_of_memory ? "fakeErrorMemory" : "fakeErrorOther";
}

namespace runtime {

int device_count() {
  enter("fakeCount");
  return ledger().devices;
}

Properties query() {
  Properties properties;
  properties.platform = "fake-one";
  return properties;
}

std::string launch(const void*, const LaunchShape&, NativeStream, void**) {
  return ledger().failing_call == "fakeLaunch" ? describe(ledger().failure, "fakeLaunch") : "";
}

void* allocate(std::size_t bytes) {
  enter("fakeMalloc");
  ++ledger().memory;
  return std::malloc(bytes);
}

void free(void* memory) {
  enter("fakeFree");
  --ledger().memory;
  std::free(memory);
}

void* allocate_async(std::size_t bytes, NativeStream) { return allocate(bytes); }
void free_async(void* memory, NativeStream) { free(memory); }

void* allocate_pinned(std::size_t bytes) {
  enter("fakeMallocHost");
  ++ledger().pinned;
  return std::malloc(bytes);
}

void free_pinned(void* memory) {
  enter("fakeFreeHost");
  --ledger().pinned;
  std::free(memory);
}

bool is_pageable(const void* memory) { return memory == ledger().pageable; }

void copy(void* to, const void* from, std::size_t bytes, NativeStream) {
  enter("fakeCopy");
  std::memcpy(to, from, bytes);
}

void fill(void* to, int value, std::size_t bytes, NativeStream) {
  enter("fakeFill");
  std::memset(to, value, bytes);
}

void call_host(void (*function)(void*), void* argument, NativeStream) { function(argument); }

NativeStream create_stream() { return create<StreamState>("fakeStream", ledger().streams); }
void destroy(NativeStream stream) { release("fakeStreamDestroy", stream, ledger().streams); }
void synchronize(NativeStream) { enter("fakeSynchronize"); }
void synchronize_device() { enter("fakeSynchronize"); }
NativeEvent create_event() { return create<EventState>("fakeEvent", ledger().events); }
NativeEvent create_timing_event() { return create_event(); }
double elapsed_milliseconds(NativeEvent, NativeEvent) { return 1; }
void destroy(NativeEvent event) { release("fakeEventDestroy", event, ledger().events); }
void record(NativeEvent, NativeStream) {}
void wait(NativeStream, NativeEvent) {}
void synchronize(NativeEvent) { enter("fakeSynchronize"); }

void begin_capture(NativeStream stream) {
  enter("fakeBeginCapture");
  ++ledger().captures;
  stream->capturing = true;
}

bool is_captured(NativeStream stream) { return stream->capturing; }

NativeGraph end_capture(NativeStream stream) {
  --ledger().captures;
  stream->capturing = false;
  return create<GraphState>("fakeEndCapture", ledger().graphs);
}

NativeGraphExec instantiate(NativeGraph) {
  return create<GraphExecState>("fakeInstantiate", ledger().graphs);
}

void launch(NativeGraphExec, NativeStream) { enter("fakeGraphLaunch"); }
void destroy(NativeGraph graph) { release("fakeGraphDestroy", graph, ledger().graphs); }
void destroy(NativeGraphExec graph) { release("fakeGraphDestroy", graph, ledger().graphs); }

std::vector<NativeNode> nodes(NativeGraph) {
  static const GraphNode kernel{"kernel",
                                "_ZN5plumb6device11hip_kernels13attend_kernelENS1_7MlaCallE"};
  static const GraphNode copy{"copy", ""};
  return {&kernel, &copy};
}

GraphNode describe_node(NativeNode node) { return *node; }

}  // namespace runtime
}  // namespace plumb::device::fake
