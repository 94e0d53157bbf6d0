// SPDX-License-Identifier: Apache-2.0
//
// How a block is scheduled. The threads that may run stand in one queue, at first all of them in
// the run's order (forward, reverse, random). A fiber takes the first and runs it; if it returns
// without having waited, the same fiber takes the next one: a kernel without barriers runs on one
// stack. A thread that has to wait switches straight to the first of the queue, on that thread's
// stack or on a fresh one. The last thread to arrive at a block_sync, or to leave when all others
// wait there, puts all of them back, again in the run's order. A wave operation is the same among
// the lanes of its mask, which go to the front of the queue. When the queue is empty and threads
// are left, that is a deadlock.
//
// A fault never unwinds a simulated thread: control goes to the host thread's stack, every other
// stack is dropped (kernels own nothing that needs a destructor), and run_grid throws.
#include <fmt/format.h>

#include <numeric>

#include "device/sim/block.h"

namespace plumb::device::sim {

namespace {

void check_limits(const KernelCall& call, const Properties& properties) {
  const LaunchShape& shape = call.shape;
  const auto refuse = [&](const std::string& what) {
    throw DeviceError(Fault::launch_limits, fmt::format("kernel {}: {}", call.name, what));
  };
  if (shape.block < 1 || shape.block > properties.max_threads_per_block)
    refuse(fmt::format("block of {} threads, the platform allows 1 to {}", shape.block,
                       properties.max_threads_per_block));
  if (shape.grid_x < 1 || shape.grid_x > properties.max_grid_x)
    refuse(fmt::format("grid_x of {}, the platform allows 1 to {}", shape.grid_x,
                       properties.max_grid_x));
  if (shape.grid_y < 1 || shape.grid_y > properties.max_grid_y)
    refuse(fmt::format("grid_y of {}, the platform allows 1 to {}", shape.grid_y,
                       properties.max_grid_y));
}

// Position -> block, without a table: for random order a walk by a step that shares no factor with
// the count.
class BlockOrder {
 public:
  BlockOrder(Order order, std::uint64_t seed, std::int64_t count) : order_(order), count_(count) {
    if (order != Order::random) return;
    const auto n = static_cast<std::uint64_t>(count);
    step_ = static_cast<std::int64_t>((seed * 0x9E3779B97F4A7C15U >> 8) % n) | 1;
    while (std::gcd(step_, count) != 1) step_ += 2;
    step_ %= count;
    at_ = static_cast<std::int64_t>((seed ^ 0xD1B54A32D192ED03U) % n);
  }
  std::int64_t next() {
    if (order_ == Order::forward) return position_++;
    if (order_ == Order::reverse) return count_ - 1 - position_++;
    at_ = at_ >= count_ - step_ ? at_ - (count_ - step_) : at_ + step_;
    return at_;
  }

 private:
  Order order_;
  std::int64_t count_, position_ = 0, step_ = 1, at_ = 0;
};

}  // namespace

void run_grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
              const MemoryMap&) {
  check_limits(call, properties);
  Block& block = block_of_host_thread();
  block.start_kernel(call, properties, conditions);
  const std::int64_t count = call.shape.grid_x * call.shape.grid_y;
  BlockOrder order(conditions.order, conditions.seed, count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = order.next();
    block.run(index % call.shape.grid_x, index / call.shape.grid_x);
  }
}

}  // namespace plumb::device::sim
