// SPDX-License-Identifier: Apache-2.0
//
// How a block is scheduled. Threads that may run are in one queue. At first all of them are, in the
// run's order (forward, reverse, random). A fiber takes the first thread and runs it. If the thread
// returns without having waited, the same fiber takes the next one: a kernel without barriers runs
// on one stack. A thread that has to wait switches directly to the first thread of the queue, on
// that thread's stack or on a fresh one. When the last thread arrives at a block_sync, or leaves
// while all others wait there, all of them return to the queue, again in the run's order. A wave
// operation does the same with the lanes of its mask, which go to the front of the queue. An empty
// queue while threads are left is a deadlock.
//
// On an interleaving device a block pauses at each block_sync that all of its threads have reached,
// and at its end. Until it is resumed, the host thread may run blocks of other launches.
//
// An error never unwinds a simulated thread. Control returns to the host thread's stack, all other
// stacks are dropped (kernels own nothing that needs a destructor), and run_grid throws.
#include "device/sim/grid/grid.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "device/sim/grid/block.h"
#include "device/sim/scramble.h"

namespace plumb::device::sim {

namespace {

// Blocks of this host thread that serve no launch. The next launch reuses their stacks and memory.
thread_local std::vector<std::unique_ptr<Block>> idle_blocks;

std::unique_ptr<Block> take_block() {
  if (idle_blocks.empty()) return std::make_unique<Block>();
  std::unique_ptr<Block> block = std::move(idle_blocks.back());
  idle_blocks.pop_back();
  return block;
}

}  // namespace

BlockOrder::BlockOrder(const Conditions& conditions, std::int64_t count)
    : order_(conditions.order), seed_(conditions.seed), count_(count) {
  while ((std::int64_t{1} << (2 * half_bits_)) < count) ++half_bits_;
}

std::int64_t BlockOrder::next() {
  const std::int64_t at = position_++;
  if (order_ == Order::forward) return at;
  if (order_ == Order::reverse) return count_ - 1 - at;
  std::int64_t block = permute(at);
  while (block >= count_) block = permute(block);
  return block;
}

std::int64_t BlockOrder::permute(std::int64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = static_cast<std::uint64_t>(value) >> half_bits_;
  std::uint64_t right = static_cast<std::uint64_t>(value) & mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t mixed = scramble(seed_ + round * 0x9E3779B97F4A7C15U + right);
    left = std::exchange(right, (left ^ mixed) & mask);
  }
  return static_cast<std::int64_t>(left << half_bits_ | right);
}

void check_limits(const KernelCall& call, const Properties& properties) {
  const LaunchShape& shape = call.shape;
  const auto refuse = [&](const std::string& what) {
    throw DeviceError(ErrorKind::launch_limits, fmt::format("kernel {}: {}", call.name, what));
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
  if (shape.dynamic_shared_bytes > properties.shared_bytes_per_block)
    refuse(fmt::format("{} bytes of dynamic shared memory, the platform has {}",
                       shape.dynamic_shared_bytes, properties.shared_bytes_per_block));
}

Grid::Grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
           const MemoryMap& memory)
    : columns_(call.shape.grid_x),
      order_(conditions, call.shape.grid_x * call.shape.grid_y),
      interleaved_(conditions.policy == Policy::interleaved) {
  check_limits(call, properties);
  block_ = take_block();
  block_->start_kernel(call, properties, conditions, memory);
}

Grid::~Grid() {
  if (block_ == nullptr) return;
  if (in_block_) block_->abandon();
  idle_blocks.push_back(std::move(block_));
}

bool Grid::advance() {
  do {
    if (!in_block_) {
      const std::int64_t index = order_.next();
      block_->start(index % columns_, index / columns_);
    }
    in_block_ = true;
    in_block_ = !block_->resume();
  } while (!interleaved_ && !is_over());
  return is_over();
}

void run_grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
              const MemoryMap& memory) {
  Grid grid(call, properties, conditions, memory);
  while (!grid.advance()) {
  }
}

}  // namespace plumb::device::sim
