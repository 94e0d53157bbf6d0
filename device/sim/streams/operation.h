// SPDX-License-Identifier: Apache-2.0
//
// Operations of a stream or a graph, as values. A value has everything that its operation needs, so
// that it can run long after the call that made it, any number of times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/sim/launch.h"

namespace plumb::device::sim {

struct StreamState;
struct GraphData;

struct MemoryCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  // Bytes of a pageable source at the time of the call. Empty: `from` is read when the copy runs.
  std::shared_ptr<const std::vector<std::byte>> snapshot;
};

struct MemoryFill {
  void* to = nullptr;
  std::uint8_t value = 0;
  std::size_t bytes = 0;
};

struct HostCall {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  std::string name;                  // kernel name, if the function stands for a kernel
  std::span<const std::byte> words;  // memory with the addresses that the function uses
};

// Reached when `stream` has executed its first `position` operations.
struct StreamPoint {
  StreamState* stream = nullptr;
  std::uint64_t position = 0;
};

struct Wait {
  StreamPoint point;
};

struct Replay {
  std::shared_ptr<const GraphData> graph;
};

using Operation = std::variant<KernelCall, MemoryCopy, MemoryFill, HostCall, Wait, Replay>;

// A node may run when all nodes in `needs` have run. These are indices of earlier nodes.
struct CapturedNode {
  Operation operation;
  std::vector<int> needs;
};

struct GraphData {
  std::vector<CapturedNode> nodes;
  // Addresses that nodes keep, and words that may be addresses, each with the first node that keeps
  // it.
  std::map<std::uintptr_t, int> addresses, guesses;
};

// "kernel 'rms_norm'", "copy of 64 bytes": for messages.
std::string describe(const Operation& operation);
// Addresses that an operation will use.
KeptWords kept_by(const Operation& operation);
// Kind and kernel name of one node.
GraphNode summary(const Operation& operation);

}  // namespace plumb::device::sim
