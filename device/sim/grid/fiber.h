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

// Stack of one fiber, guard page excluded. A kernel that needs more runs into the guard page. The
// sanitizers' frames are several times as large.
constexpr std::size_t kFiberStackBytes = (sanitizers::kActive ? 256 : 64) << 10;

// Leaves the running stack, whose place goes to *from, for the one that was left at `to`.
// `argument` is for the function that a fresh stack starts with.
extern "C" void plumb_switch_stacks(void** from, void* to, void* argument);

class Fiber {
 public:
  using Entry = void (*)(Fiber& self);

  Fiber() = default;  // stands for the stack that the host thread runs on
  Fiber(int index, Entry entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Forgets whatever ran on the stack; the next switch to this fiber starts at its entry.
  void restart();
  // Leaves `from`, which must be running, and returns when something switches back to it.
  static void switch_to(Fiber& from, Fiber& to) {
    sanitizers::start_switch(&from.fake_stack_, to.bottom_, to.bytes_, to.tsan_fiber_);
    if constexpr (sanitizers::kActive) to.previous_ = &from;
    plumb_switch_stacks(&from.context_, to.context_, &to);
    from.arrive();
  }
  // Brings what the next switch to this fiber reads into the cache: the stacks of a block do not
  // all fit into the innermost one.
  void expect_switch() const {
    const auto* const place = static_cast<const std::byte*>(context_);
    __builtin_prefetch(place);
    __builtin_prefetch(place + 64);
    __builtin_prefetch(place + 128);
  }
  // Around a long jump to a stack that was left by switch_to: what the sanitizers have to know.
  static void begin_jump(const Fiber& to);
  static void finish_jump(const Fiber& to);
  bool holds(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(bottom_) <
           bytes_;
  }
  bool guards(const void* address) const;  // in the guard page below the stack
  void adopt_host_thread();

 private:
  static void start(void* self);
  // Runs on the stack that was switched to.
  void arrive() {
    if constexpr (sanitizers::kActive)
      sanitizers::finish_switch(fake_stack_, &previous_->bottom_, &previous_->bytes_);
  }

  void* context_ = nullptr;  // where it goes on
  Fiber* previous_ = nullptr;
  Entry entry_ = nullptr;
  std::byte* mapping_ = nullptr;
  std::byte* top_ = nullptr;
  const void* bottom_ = nullptr;  // what the address sanitizer has to know
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* tsan_fiber_ = nullptr;
};

// Fibers by the last used first, so that a few hot stacks serve a kernel without barriers.
class FiberPool {
 public:
  explicit FiberPool(Fiber::Entry entry) : entry_(entry) {}
  Fiber& take();
  void give_back(Fiber& fiber) { idle_.push_back(&fiber); }
  // After a fault: every fiber is idle again, whatever it was doing.
  void abandon_all();

 private:
  Fiber::Entry entry_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

}  // namespace plumb::device::sim
