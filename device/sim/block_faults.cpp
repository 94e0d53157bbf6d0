// SPDX-License-Identifier: Apache-2.0
//
// How a block ends when a kernel does what it may not, and the calls that kernels make.
#include <fmt/format.h>

#include <bit>

#include "device/sim/block.h"

namespace plumb::device::sim {

namespace {

constexpr int kMostListed = 4;  // groups of waiting threads that a message shows

}  // namespace

std::string Block::describe(const Thread& thread) const {
  return fmt::format("block ({}, {}) thread {} (wave {}, lane {})", block_x, block_y, thread.thread,
                     thread.wave, thread.lane);
}

void Block::fail(Fault fault, std::string message) {
  fault_ = fault;
  error_ = fmt::format("kernel {}: {}: {}", kernel(), describe(running()), message);
  message = {};
  Fiber::switch_to(*running().fiber, host_);
  std::terminate();  // nothing switches back to an abandoned stack
}

void Block::fail_deadlock() {
  std::string text;
  int groups = 0;
  std::vector<bool> told(threads_.size(), false);
  for (const Thread& thread : threads_) {
    if (thread.state == Thread::State::returned || told[thread.thread]) continue;
    int count = 0;
    for (const Thread& other : threads_)
      if (other.state == thread.state && other.state != Thread::State::returned &&
          same_line(other.site, thread.site)) {
        told[other.thread] = true;
        ++count;
      }
    if (++groups > kMostListed) continue;
    const Wave::Operation* operation = waves_[thread.wave].waiting_operation(thread.lane);
    text += fmt::format("; {} thread{} (first {}) in {} at {}", count, count == 1 ? "" : "s",
                        thread.thread, operation ? name_of(operation->kind) : "block_sync",
                        name_of_site(thread.site));
    if (operation != nullptr)
      text +=
          fmt::format(" waiting for lanes {}", lane_list(operation->mask & ~operation->arrived));
  }
  if (groups > kMostListed) text += fmt::format("; and {} more places", groups - kMostListed);
  std::vector<bool>().swap(told);
  fail(Fault::deadlock, "no thread can go on" + std::exchange(text, {}));
}

std::uint64_t all_lanes() { return block_of_host_thread().all_lanes(); }

void block_sync(const Site& site) { block_of_host_thread().sync(site); }

std::uint64_t wave_operation(WaveKind kind, std::uint64_t mask, std::uint64_t value,
                             int source_lane, const Site& site) {
  return block_of_host_thread().wave_operation(kind, mask, value, source_lane, site);
}

void check_width(int width, const Site& site) {
  if (width > 0 && std::has_single_bit(static_cast<unsigned>(width)) &&
      width <= current->block->wave_size)
    return;
  block_of_host_thread().fail(
      Fault::invalid_argument,
      fmt::format("shuffle at {} with width {}: a power of two up to {} is needed",
                  name_of_site(site), width, current->block->wave_size));
}

void* static_shared(const SharedSite& site) { return block_of_host_thread().static_shared(site); }
void* dynamic_shared() { return block_of_host_thread().dynamic_shared(); }
void note_atomic(const void*, std::size_t) {}

}  // namespace plumb::device::sim
