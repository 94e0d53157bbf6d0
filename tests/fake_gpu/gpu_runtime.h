// SPDX-License-Identifier: Apache-2.0
//
// The runtime calls that device/gpu makes, on host memory. The ledger counts their objects.
#pragma once

#include <string>
#include <vector>

#include "device/gpu/check.h"
#include "device/gpu/launch.h"

namespace plumb::device::fake {

struct StreamState {
  bool capturing = false;
};
struct EventState {};
struct GraphState {};
struct GraphExecState {};

using NativeStream = StreamState*;
using NativeEvent = EventState*;
using NativeGraph = GraphState*;
using NativeGraphExec = GraphExecState*;
using NativeNode = const GraphNode*;

namespace runtime {

int device_count();
Properties query();
std::string launch(const void* kernel, const LaunchShape& shape, NativeStream stream,
                   void** arguments);

void* allocate(std::size_t bytes);
void free(void* memory);
void* allocate_async(std::size_t bytes, NativeStream stream);
void free_async(void* memory, NativeStream stream);
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory);
bool is_pageable(const void* memory);
void copy(void* to, const void* from, std::size_t bytes, NativeStream stream);
void fill(void* to, int value, std::size_t bytes, NativeStream stream);
void call_host(void (*function)(void*), void* argument, NativeStream stream);

NativeStream create_stream();
void destroy(NativeStream stream);
void synchronize(NativeStream stream);
void synchronize_device();
NativeEvent create_event();
NativeEvent create_timing_event();
double elapsed_milliseconds(NativeEvent from, NativeEvent to);  // always 1
void destroy(NativeEvent event);
void record(NativeEvent event, NativeStream stream);
void wait(NativeStream stream, NativeEvent event);
void synchronize(NativeEvent event);

void begin_capture(NativeStream stream);
bool is_captured(NativeStream stream);
NativeGraph end_capture(NativeStream stream);
NativeGraphExec instantiate(NativeGraph graph);
void launch(NativeGraphExec graph, NativeStream stream);
void destroy(NativeGraph graph);
void destroy(NativeGraphExec graph);
// Returns two nodes for any graph: a kernel with a mangled name, and a copy.
std::vector<NativeNode> nodes(NativeGraph graph);
GraphNode describe_node(NativeNode node);

}  // namespace runtime
}  // namespace plumb::device::fake
