// SPDX-License-Identifier: Apache-2.0
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
          [](const HostCall&) { return std::string("host function"); },
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
  memory_.check_range("copy to", copy.to, copy.bytes);
  pinned_.check_range("copy to", copy.to, copy.bytes);
  if (copy.snapshot) return;
  memory_.check_range("copy from", copy.from, copy.bytes);
  pinned_.check_range("copy from", copy.from, copy.bytes);
}

void Executor::check(const Fill& fill) const { memory_.check_range("fill", fill.to, fill.bytes); }

void Executor::run(const Operation& operation) {
  const Flag flag(busy_);
  run_one(operation);
}

void Executor::run_one(const Operation& operation) {
  std::visit(Overloaded{
                 [&](const KernelCall& call) { run_grid(call, properties_, conditions_, memory_); },
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
                 [](const Wait&) {},
                 [&](const Replay& replayed) { replay(*replayed.graph); },
             },
             operation);
}

void Executor::replay(const GraphData& graph) {
  for (int i : replay_order(graph, conditions_.policy)) run_one(graph.nodes[i].operation);
}

}  // namespace plumb::device::sim
