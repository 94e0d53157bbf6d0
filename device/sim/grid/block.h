// SPDX-License-Identifier: Apache-2.0
//
// A block that a host thread runs: its threads, which of them may run next, and where the others
// wait. grid.cpp describes how a block is scheduled.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/sim/grid/barrier_sites.h"
#include "device/sim/grid/fiber.h"
#include "device/sim/grid/shared_memory.h"
#include "device/sim/grid/wave.h"
#include "device/sim/launch.h"
#include "device/sim/scramble.h"

namespace plumb::device::sim {

struct Thread : ThreadContext {
  enum class ThreadState { ready, in_block_sync, in_wave_operation, returned };
  Fiber* fiber = nullptr;  // nullptr: not started
  Thread* next = nullptr;  // next thread in the queue of ready threads
  ThreadState state = ThreadState::ready;
  Site site;  // barrier or wave operation at which it waits, or waited last
};

class Checker;

// Serves one launch at a time, on one host thread.
class Block : public BlockContext {
 public:
  Block();
  ~Block();
  void start_kernel(const KernelCall& call, const Properties& properties,
                    const Conditions& conditions, const MemoryMap& memory);
  // Prepares the next block of the launch. None of its threads has begun.
  void start(std::int64_t x, std::int64_t y);
  // Runs the block's threads. Returns true when all have ended. On an interleaving device it may
  // return false when all of them have met in a block_sync. Throws the error of a thread.
  bool resume();
  // Drops a block that will not be resumed.
  void abandon();

  // These are called by the running thread.
  inline void sync(const Site& site);
  inline std::uint64_t wave_operation(WaveKind kind, std::uint64_t mask, std::uint64_t value,
                                      int source_lane, const Site& site);
  std::uint64_t all_lanes() const { return waves_[current->wave].lanes(); }
  void* static_shared(const SharedSite& site);
  void* dynamic_shared() { return shared_.dynamic(); }
  // Ends the run: control returns to resume(), which throws. The stack is dropped and not unwound,
  // so the caller may own nothing but `message`, which is moved from.
  [[noreturn]] void fail(ErrorKind fault, std::string&& message);

  // Called before and after a long jump to the host thread's stack, see launch.h.
  void begin_abandoning();
  std::string finish_abandoning();

  SharedMemory& shared() { return shared_; }
  const std::string& kernel() const { return call_->name; }
  Thread& running() const { return *static_cast<Thread*>(current); }
  const Thread& thread_at(int index) const { return threads_[index]; }
  std::string describe(const Thread& thread) const;  // "block (3, 0) thread 17 (wave 0, lane 17)"
  std::string describe_progress(const Thread& thread) const;  // "after mhc_pre.cu:120"

 private:
  static void fiber_entry(Fiber& self);
  void fiber_loop(Fiber& self);
  void invoke_kernel();
  void start_threads();
  void leave();
  void release_block();
  void release_wave(int wave, std::uint64_t lanes);
  // Threads that become ready together, linked in the order in which they will run.
  struct Line {
    Thread *first = nullptr, *last = nullptr;
    inline void append(Thread& thread);
    inline void prepend(Thread& thread);
  };
  inline void add(Thread& thread, Line& line);  // call in ascending order of threads
  void queue(Line line, bool in_front);
  Line shuffled_batch();
  inline Thread* next_ready();
  inline void wait();
  void rest();
  [[noreturn]] void fail_wave_call(const WaveCall& call);
  [[noreturn]] void fail_deadlock();
  [[noreturn]] void drop_stack(ErrorKind fault, std::string&& message);
  std::string describe_awaited(const Wave::Operation& operation) const;
  std::string describe_divergence(const Site& site) const;
  std::string describe_deadlock() const;
  std::uint64_t random() { return scramble(random_state_ += 0x9E3779B97F4A7C15U); }

  const KernelCall* call_ = nullptr;
  Order order_ = Order::forward;
  bool rests_ = false, resting_ = false;
  std::uint64_t random_state_ = 0;
  FiberPool pool_;
  Fiber host_;
  SharedMemory shared_;
  BarrierSites sites_;
  std::vector<Thread> threads_;
  std::vector<Wave> waves_;
  std::vector<Thread*> batch_;  // random order: collects threads that become ready together
  Thread* head_ = nullptr;
  Thread* tail_ = nullptr;
  int live_ = 0, arrived_ = 0;
  const Thread* first_arrived_ = nullptr;
  ErrorKind fault_ = ErrorKind::other;
  std::string error_;
  std::exception_ptr exception_;
  std::unique_ptr<Checker> own_checker_;  // made by the first checked launch
  bool checked_ = false;
};

// The block of the running thread.
inline Block& running_block() { return static_cast<Block&>(*current->block); }

}  // namespace plumb::device::sim
