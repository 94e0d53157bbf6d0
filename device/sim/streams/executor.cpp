// SPDX-License-Identifier: Apache-2.0
//
// Runs every piece of an operation with addresses checked and page faults caught.
#include "device/sim/streams/executor.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <queue>
#include <utility>

#include "device/filler.h"
#include "device/sim/memory/freed_ranges.h"
#include "device/sim/memory/guard.h"
#include "device/sim/streams/stray_access.h"

namespace plumb::device::sim {

namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

// Marks the calling thread as the one that runs operations.
class Running {
 public:
  explicit Running(std::atomic<std::thread::id>& thread) : thread_(thread) {
    thread_ = std::this_thread::get_id();
  }
  ~Running() { thread_ = std::thread::id(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<std::thread::id>& thread_;
};

DeviceError explain_wild(const PageFault& fault, const std::string& who) {
  const std::string text = who + ": access to an address that cannot exist";
  if (fault.filler == 0) return DeviceError(ErrorKind::out_of_bounds, text);
  if (fault.filler == kFreedPoison) {
    return DeviceError(ErrorKind::use_after_free, text + ": plumb's poison of freed memory");
  }
  const bool gone = fault.filler == kGoneParameter * 0x101U;
  return DeviceError(ErrorKind::out_of_bounds,
                     text + ": " + std::string(gone ? kReadsGoneParameters : kReadsUnwritten));
}

// An address of no memory of this device. A sparse block has an address space of its own, which
// ends with the block.
DeviceError explain_stray(const PageFault& fault, const std::string& who,
                          std::initializer_list<std::uint64_t> own_memories) {
  const auto freed = find_freed(fault.address);
  if (!freed) {
    return DeviceError(ErrorKind::out_of_bounds, who + ": access far outside of every allocation");
  }
  const bool own = std::ranges::find(own_memories, freed->memory) != own_memories.end();
  return DeviceError(ErrorKind::use_after_free,
                     who + ": access to '" + freed->label + "'" +
                         (own ? ", which has been freed" : " " + std::string(kOfEarlierDevice)));
}

}  // namespace

std::string describe(const Operation& operation) {
  return std::visit(
      Overloaded{
          [](const KernelCall& call) { return "kernel '" + call.name + "'"; },
          [](const MemoryCopy& copy) { return "copy of " + std::to_string(copy.bytes) + " bytes"; },
          [](const MemoryFill& fill) { return "fill of " + std::to_string(fill.bytes) + " bytes"; },
          [](const HostCall& call) {
            return "host function" + (call.name.empty() ? "" : " '" + call.name + "'");
          },
          [](const Wait&) { return std::string("wait"); },
          [](const Replay&) { return std::string("replay"); },
      },
      operation);
}

void KeptWords::add_words(const void* begin, std::size_t bytes, bool certain) {
  const auto* at = static_cast<const std::byte*>(begin);
  std::vector<std::uintptr_t>& words = certain ? addresses : guesses;
  for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= bytes; i += sizeof(std::uintptr_t)) {
    std::memcpy(&words.emplace_back(), at + i, sizeof(std::uintptr_t));
  }
}

KeptWords kept_by(const Operation& operation) {
  KeptWords kept;
  const auto add = [&](const void* address) {
    kept.addresses.push_back(reinterpret_cast<std::uintptr_t>(address));
  };
  std::visit(Overloaded{
                 [&](const KernelCall& call) {
                   if (call.keep != nullptr) call.keep(call.arguments.get(), kept);
                 },
                 [&](const MemoryCopy& copy) {
                   add(copy.to);
                   if (copy.snapshot == nullptr) add(copy.from);
                 },
                 [&](const MemoryFill& fill) { add(fill.to); },
                 [&](const HostCall& call) {
                   kept.add_words(call.words.data(), call.words.size(), false);
                 },
                 [](const auto&) {},
             },
             operation);
  return kept;
}

GraphNode summary(const Operation& operation) {
  return std::visit(Overloaded{
                        [](const KernelCall& call) { return GraphNode{"kernel", call.name}; },
                        [](const MemoryCopy&) { return GraphNode{"copy", ""}; },
                        [](const MemoryFill&) { return GraphNode{"fill", ""}; },
                        [](const HostCall& call) {
                          return GraphNode{call.name.empty() ? "host" : "kernel", call.name};
                        },
                        [](const auto&) { return GraphNode{"host", ""}; },
                    },
                    operation);
}

std::vector<int> replay_order(const GraphData& graph, Policy policy) {
  const int count = static_cast<int>(graph.nodes.size());
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (policy == Policy::early) return order;

  std::vector<int> missing(count);
  std::vector<std::vector<int>> needed_by(count);
  std::priority_queue<int> ready;
  for (int i = 0; i < count; ++i) {
    for (int need : graph.nodes[i].needs) needed_by[need].push_back(i);
    missing[i] = static_cast<int>(graph.nodes[i].needs.size());
    if (missing[i] == 0) ready.push(i);
  }
  for (int& next : order) {
    next = ready.top();
    ready.pop();
    for (int later : needed_by[next]) {
      if (--missing[later] == 0) ready.push(later);
    }
  }
  return order;
}

void Executor::check(const MemoryCopy& copy) const {
  if (copy.bytes == 0) return;
  check_side("copy to", copy.to, copy.bytes);
  if (copy.snapshot) return;
  check_side("copy from", copy.from, copy.bytes);
  const auto to = reinterpret_cast<std::uintptr_t>(copy.to);
  const auto from = reinterpret_cast<std::uintptr_t>(copy.from);
  if (to < from + copy.bytes && from < to + copy.bytes) {
    throw DeviceError(ErrorKind::invalid_argument, "copy: source and destination overlap");
  }
}

void Executor::check(const MemoryFill& fill) const {
  if (fill.bytes == 0) return;
  check_side("fill", fill.to, fill.bytes);
  if (memory_.owns(fill.to) || pinned_.owns(fill.to)) return;
  throw DeviceError(ErrorKind::invalid_argument, "fill: pageable host memory");
}

void Executor::check_side(std::string_view call, const void* begin, std::size_t bytes) const {
  if (begin == nullptr) {
    throw DeviceError(ErrorKind::invalid_argument, std::string(call) + ": null pointer");
  }
  memory_.check_range(call, begin, bytes);
  pinned_.check_range(call, begin, bytes);
}

void Executor::run(Operation operation) {
  OperationProgress progress(*this, std::move(operation));
  while (!progress.advance()) {
  }
}

bool Executor::advance(const Operation& operation, std::optional<Grid>& grid) {
  const Running running(running_);
  bool over = false;
  const std::optional<PageFault> fault =
      run_watching(memory_, pinned_, [&] { over = perform(operation, grid); });
  if (fault) report(*fault, operation);
  return over;
}

bool Executor::perform(const Operation& operation, std::optional<Grid>& grid) {
  return std::visit(Overloaded{
                        [&](const KernelCall& call) {
                          if (!grid) grid.emplace(call, properties_, conditions_, reachable_);
                          if (!grid->advance()) return false;
                          grid.reset();
                          return true;
                        },
                        [&](const MemoryCopy& copy) {
                          check(copy);
                          const void* from = copy.snapshot ? copy.snapshot->data() : copy.from;
                          if (copy.bytes != 0) std::memcpy(copy.to, from, copy.bytes);
                          return true;
                        },
                        [&](const MemoryFill& fill) {
                          check(fill);
                          if (fill.bytes != 0) std::memset(fill.to, fill.value, fill.bytes);
                          return true;
                        },
                        [](const HostCall& call) {
                          call.function(call.argument);
                          return true;
                        },
                        [](const auto&) { return true; },
                    },
                    operation);
}

OperationProgress::OperationProgress(Executor& executor, Operation operation)
    : executor_(executor), operation_(std::move(operation)), order_{0} {
  if (const Replay* replay = std::get_if<Replay>(&operation_)) {
    order_ = replay_order(*replay->graph, executor.conditions_.policy);
  }
}

bool OperationProgress::advance() {
  if (next_ == order_.size()) return true;
  const Replay* replay = std::get_if<Replay>(&operation_);
  const Operation& part = replay ? replay->graph->nodes[order_[next_]].operation : operation_;
  if (executor_.advance(part, grid_)) ++next_;
  return next_ == order_.size();
}

void Executor::report(const PageFault& fault, const Operation& operation) const {
  std::string who = describe(operation);
  const std::string thread = finish_abandoning_grid();
  if (!thread.empty()) who += ", " + thread;
  throw explain(fault, who, operation);
}

DeviceError Executor::explain(const PageFault& fault, const std::string& who,
                              const Operation& operation) const {
  const auto by_arguments = [&](const DeviceError& found) {
    if (found.kind() != ErrorKind::out_of_bounds) return found;
    return explain_by_arguments(found, fault.address, operation, memory_, pinned_);
  };
  switch (fault.kind) {
    case PageFault::Place::memory: return by_arguments(fault.memory->explain(fault.address, who));
    case PageFault::Place::null:
      return DeviceError(
          ErrorKind::out_of_bounds,
          who + ": access " + std::string(kThroughNull) +
              (fault.address == 0 ? std::string()
                                  : ", at byte " + std::to_string(fault.address) + " from it"));
    case PageFault::Place::wild: {
      const DeviceError found = explain_wild(fault, who);
      return fault.filler == 0 ? by_arguments(found) : found;
    }
    case PageFault::Place::stack:
      return DeviceError(ErrorKind::out_of_memory, who + ": the simulated thread's stack is full");
    case PageFault::Place::stray:
      return by_arguments(explain_stray(fault, who, {memory_.number(), pinned_.number()}));
  }
  return DeviceError(ErrorKind::other, who);
}

}  // namespace plumb::device::sim
