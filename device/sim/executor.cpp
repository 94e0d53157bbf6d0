// SPDX-License-Identifier: Apache-2.0
//
// One operation at a time, with addresses checked and page faults caught.
#include "device/sim/executor.h"

#include <cstring>
#include <numeric>
#include <queue>

namespace plumb::device::sim {

namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

std::string describe(const Operation& operation) {
  return std::visit(
      Overloaded{
          [](const KernelCall& call) { return "kernel '" + call.name + "'"; },
          [](const Copy& copy) { return "copy of " + std::to_string(copy.bytes) + " bytes"; },
          [](const Fill& fill) { return "fill of " + std::to_string(fill.bytes) + " bytes"; },
          [](const HostCall& call) {
            return "host function" + (call.name.empty() ? "" : " '" + call.name + "'");
          },
          [](const Wait&) { return std::string("wait"); },
          [](const Replay&) { return std::string("replay"); },
      },
      operation);
}

GraphNode summary(const Operation& operation) {
  return std::visit(Overloaded{
                        [](const KernelCall& call) { return GraphNode{"kernel", call.name}; },
                        [](const Copy&) { return GraphNode{"copy", ""}; },
                        [](const Fill&) { return GraphNode{"fill", ""}; },
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

void Executor::check(const Copy& copy) const {
  if (copy.bytes == 0) return;
  check_side("copy to", copy.to, copy.bytes);
  if (copy.snapshot) return;
  check_side("copy from", copy.from, copy.bytes);
  const auto to = reinterpret_cast<std::uintptr_t>(copy.to);
  const auto from = reinterpret_cast<std::uintptr_t>(copy.from);
  if (to < from + copy.bytes && from < to + copy.bytes) {
    throw DeviceError(Fault::invalid_argument, "copy: source and destination overlap");
  }
}

void Executor::check(const Fill& fill) const {
  if (fill.bytes == 0) return;
  check_side("fill", fill.to, fill.bytes);
  if (memory_.owns(fill.to) || pinned_.owns(fill.to)) return;
  throw DeviceError(Fault::invalid_argument, "fill: pageable host memory");
}

void Executor::check_side(std::string_view call, const void* begin, std::size_t bytes) const {
  if (begin == nullptr) {
    throw DeviceError(Fault::invalid_argument, std::string(call) + ": null pointer");
  }
  memory_.check_range(call, begin, bytes);
  pinned_.check_range(call, begin, bytes);
}

void Executor::run(const Operation& operation) {
  const Flag flag(busy_);
  if (const Replay* replay = std::get_if<Replay>(&operation)) {
    const GraphData& graph = *replay->graph;
    for (int i : replay_order(graph, conditions_.policy)) run_one(graph.nodes[i].operation);
  } else {
    run_one(operation);
  }
}

void Executor::run_one(const Operation& operation) {
  const std::optional<PageFault> fault =
      run_watching(memory_, pinned_, [&] { perform(operation); });
  if (fault) report(*fault, operation);
}

void Executor::perform(const Operation& operation) {
  std::visit(
      Overloaded{
          [&](const KernelCall& call) { run_grid(call, properties_, conditions_, reachable_); },
          [&](const Copy& copy) {
            check(copy);
            const void* from = copy.snapshot ? copy.snapshot->data() : copy.from;
            if (copy.bytes != 0) std::memcpy(copy.to, from, copy.bytes);
          },
          [&](const Fill& fill) {
            check(fill);
            if (fill.bytes != 0) std::memset(fill.to, fill.value, fill.bytes);
          },
          [](const HostCall& call) { call.function(call.argument); },
          [](const auto&) {},
      },
      operation);
}

void Executor::report(const PageFault& fault, const Operation& operation) const {
  std::string who = describe(operation);
  const std::string thread = finish_abandoning_grid();
  if (!thread.empty()) who += ", " + thread;
  switch (fault.kind) {
    case PageFault::Kind::memory: throw fault.memory->explain(fault.address, who);
    case PageFault::Kind::null:
      throw DeviceError(Fault::out_of_bounds, who + ": access through a null pointer");
    case PageFault::Kind::wild:
      throw DeviceError(Fault::out_of_bounds, who + ": access to an address that cannot exist");
    case PageFault::Kind::stack:
      throw DeviceError(Fault::out_of_memory, who + ": the simulated thread's stack is full");
    case PageFault::Kind::stray:
      throw DeviceError(Fault::out_of_bounds, who + ": access far outside of every allocation");
  }
  throw DeviceError(Fault::other, who);
}

}  // namespace plumb::device::sim
