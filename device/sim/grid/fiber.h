// SPDX-License-Identifier: Apache-2.0
//
// Fibers: stacks that the simulator switches between, one per simulated thread that has to wait.
// The address and thread sanitizers are told of every switch. A pool belongs to one host thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/sim/sanitizers.h"

namespace plumb::device::sim {

// Stack of one fiber, without its guard page. A kernel that needs more hits the guard page. With
// sanitizers, frames are several times as large.
constexpr std::size_t kFiberStackBytes = (sanitizers::kActive ? 256 : 64) << 10;

// Switches from the running stack, whose position is stored in *from, to the stack that was left at
// `to`. A fresh stack calls its function with `argument`.
extern "C" void plumb_switch_stacks(void** from, void* to, void* argument);

class Fiber {
 public:
  using Entry = void (*)(Fiber& self);

  Fiber() = default;  // stands for the stack that the host thread runs on
  Fiber(int index, Entry entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Forgets whatever ran on the stack. The next switch to this fiber starts at its entry.
  void restart();
  // Leaves `from`, which must be running. Returns when another fiber switches back to it.
  static void switch_to(Fiber& from, Fiber& to) {
    sanitizers::start_switch(&from.fake_stack_, to.bottom_, to.bytes_, to.tsan_fiber_);
    if constexpr (sanitizers::kActive) to.previous_ = &from;
    plumb_switch_stacks(&from.context_, to.context_, &to);
    from.arrive();
  }
  // Prefetches what the next switch to this fiber reads: the stacks of a block do not all fit into
  // the innermost cache.
  void expect_switch() const {
    const auto* const place = static_cast<const std::byte*>(context_);
    __builtin_prefetch(place);
    __builtin_prefetch(place + 64);
    __builtin_prefetch(place + 128);
  }
  // Tell the sanitizers, before and after, of a long jump to a stack that was left by switch_to.
  static void begin_jump(const Fiber& to);
  static void finish_jump(const Fiber& to);
  bool holds(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(bottom_) <
           bytes_;
  }
  bool guards(const void* address) const;  // true in the guard page below the stack
  void adopt_host_thread();

 private:
  static void start(void* self);
  // Runs on the stack of this fiber after a switch to it.
  void arrive() {
    if constexpr (sanitizers::kActive)
      sanitizers::finish_switch(fake_stack_, &previous_->bottom_, &previous_->bytes_);
  }

  void* context_ = nullptr;  // stack pointer at which it continues
  Fiber* previous_ = nullptr;
  Entry entry_ = nullptr;
  std::byte* mapping_ = nullptr;
  std::byte* top_ = nullptr;
  const void* bottom_ = nullptr;  // lowest address of the stack, which the address sanitizer needs
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* tsan_fiber_ = nullptr;
};

// Hands out the fiber that was used last, so that a few hot stacks serve a kernel without barriers.
class FiberPool {
 public:
  explicit FiberPool(Fiber::Entry entry) : entry_(entry) {}
  Fiber& take();
  void give_back(Fiber& fiber) { idle_.push_back(&fiber); }
  // After an error: makes all fibers idle, whatever they were running.
  void abandon_all();

 private:
  Fiber::Entry entry_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

}  // namespace plumb::device::sim
