// SPDX-License-Identifier: Apache-2.0
//
// Queue, barriers and switches: the part of a block that runs at every barrier.
#include "device/sim/grid/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "device/sim/checked/checked.h"

namespace plumb::device::sim {

constinit thread_local ThreadContext* current = nullptr;

Block::Block() : pool_(&Block::fiber_entry) {}
Block::~Block() = default;

void Block::start_kernel(const KernelCall& call, const Properties& properties,
                         const Conditions& conditions, const MemoryMap& memory) {
  call_ = &call;
  order_ = conditions.order;
  rests_ = conditions.policy == Policy::interleaved;
  random_state_ = conditions.seed;
  block_size = call.shape.block;
  wave_size = properties.wave_size;
  grid_x = call.shape.grid_x;
  grid_y = call.shape.grid_y;
  host_.adopt_host_thread();
  shared_.start_kernel(properties.shared_bytes_per_block, call.shape.dynamic_shared_bytes);
  sites_.start_kernel(call.name, conditions.disabled_barriers);
  threads_.assign(block_size, Thread{});
  waves_.resize((block_size + wave_size - 1) / wave_size);
  for (int i = 0; i < block_size; ++i) {
    threads_[i].thread = i;
    threads_[i].lane = i % wave_size;
    threads_[i].wave = i / wave_size;
    threads_[i].block = this;
  }
  checked_ = conditions.checked;
  if (!checked_) return;
  if (own_checker_ == nullptr) own_checker_ = std::make_unique<Checker>(*this);
  own_checker_->start_kernel(call, memory, wave_size);
}

void Block::start(std::int64_t x, std::int64_t y) {
  block_x = x;
  block_y = y;
  if (checked_) own_checker_->start_block(x, y);
  shared_.start_block();
  start_threads();
}

bool Block::resume() {
  resting_ = false;
  checker = checked_ ? own_checker_.get() : nullptr;
  Thread* first = next_ready();
  if (first->fiber == nullptr) first->fiber = &pool_.take();
  current = first;
  Fiber::switch_to(host_, *first->fiber);
  current = nullptr;
  checker = nullptr;
  if (error_.empty() && exception_ == nullptr) return !resting_;
  abandon();
  if (exception_ != nullptr) std::rethrow_exception(std::exchange(exception_, nullptr));
  throw DeviceError(fault_, std::exchange(error_, {}));
}

void Block::abandon() { pool_.abandon_all(); }

void Block::begin_abandoning() { Fiber::begin_jump(host_); }

std::string Block::finish_abandoning() {
  Fiber::finish_jump(host_);
  pool_.abandon_all();
  checker = nullptr;
  return describe(*static_cast<Thread*>(std::exchange(current, nullptr)));
}

bool is_below_simulated_stack(std::uintptr_t address) {
  if (current == nullptr) return false;
  const Fiber* fiber = running_block().running().fiber;
  return fiber != nullptr && fiber->guards(reinterpret_cast<const void*>(address));
}

void begin_abandoning_grid() {
  if (current != nullptr) running_block().begin_abandoning();
}

std::string finish_abandoning_grid() {
  return current != nullptr ? running_block().finish_abandoning() : std::string();
}

void Block::start_threads() {
  for (std::size_t w = 0; w < waves_.size(); ++w)
    waves_[w].start_block(std::min(wave_size, block_size - static_cast<int>(w) * wave_size));
  head_ = tail_ = nullptr;
  live_ = block_size;
  arrived_ = 0;
  first_arrived_ = nullptr;
  Line line;
  for (Thread& thread : threads_) {
    thread.fiber = nullptr;
    thread.site = Site{};
    thread.state = Thread::ThreadState::ready;
    add(thread, line);
  }
  queue(line, false);
}

void Block::fiber_entry(Fiber& self) { running_block().fiber_loop(self); }

// A fiber runs one thread after another. It switches stacks only to a thread that already has one.
void Block::fiber_loop(Fiber& self) {
  for (;;) {
    invoke_kernel();
    if (exception_ == nullptr) leave();
    Thread* next = exception_ == nullptr ? next_ready() : nullptr;
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = &self;
      current = next;
      continue;
    }
    if (next == nullptr && live_ > 0 && exception_ == nullptr) fail_deadlock();
    pool_.give_back(self);
    if (next != nullptr) current = next;
    Fiber::switch_to(self, next != nullptr ? *next->fiber : host_);
  }
}

void Block::invoke_kernel() {
  try {
    call_->invoke(call_->arguments.get());
  } catch (...) {
    exception_ = std::current_exception();
  }
}

// The running thread has returned: barriers no longer wait for it.
void Block::leave() {
  Thread& self = running();
  self.state = Thread::ThreadState::returned;
  const Wave::Operation* const left = waves_[self.wave].leave(self.lane);
  if (left != nullptr) fail(ErrorKind::exited_lane, describe_awaited(*left));
  --live_;
  if (arrived_ > 0 && arrived_ == live_) release_block();
}

void Block::sync(const Site& site) {
  if (sites_.is_disabled(site)) return;
  Thread& self = running();
  self.site = site;
  if (arrived_ == 0) {
    first_arrived_ = &self;
  } else if (!same_line(first_arrived_->site, site)) {
    fail(ErrorKind::divergent_barrier, describe_divergence(site));
  }
  self.state = Thread::ThreadState::in_block_sync;
  if (++arrived_ == live_) {
    release_block();
    if (rests_) return rest();
  }
  wait();
}

// All threads may continue, including the running one, but first the host thread does.
void Block::rest() {
  resting_ = true;
  Fiber::switch_to(*running().fiber, host_);
}

void Block::release_block() {
  sites_.note_executed(first_arrived_->site);
  if (checker != nullptr) checker->pass_block_sync();
  arrived_ = 0;
  Line line;
  for (Thread& thread : threads_)
    if (thread.state == Thread::ThreadState::in_block_sync) {
      thread.state = Thread::ThreadState::ready;
      add(thread, line);
    }
  queue(line, false);
}

std::uint64_t Block::wave_operation(WaveKind kind, std::uint64_t mask, std::uint64_t value,
                                    int source_lane, const Site& site) {
  if (kind == WaveKind::sync && sites_.is_disabled(site)) return 0;
  Thread& self = running();
  Wave& wave = waves_[self.wave];
  const WaveCall call{self.lane, kind, mask, site};
  const bool joins = wave.joins(call);
  if (!joins && !wave.is_legal(call)) fail_wave_call(call);
  self.site = site;
  self.state = Thread::ThreadState::in_wave_operation;
  Wave::Operation& operation = joins ? wave.only() : wave.open(call);
  const std::uint64_t complete = wave.arrive(operation, call, value, source_lane);
  if (complete != 0) {
    if (checker != nullptr) checker->pass_wave_operation(kind, self.wave, complete);
    if (kind == WaveKind::sync) sites_.note_executed(site);
    release_wave(self.wave, complete);
  }
  wait();
  return wave.result_of(self.lane);
}

// The wave continues before other threads, which keeps its stacks in the cache. In random order it
// does so half of the time.
void Block::release_wave(int wave, std::uint64_t lanes) {
  const bool in_front = order_ != Order::random || random() % 2 == 0;
  Thread* const first = &threads_[wave * wave_size];
  Line line;
  for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
    Thread& thread = first[std::countr_zero(left)];
    thread.state = Thread::ThreadState::ready;
    add(thread, line);
  }
  queue(line, in_front);
}

void Block::Line::append(Thread& thread) {
  (first == nullptr ? first : last->next) = &thread;
  last = &thread;
}

void Block::Line::prepend(Thread& thread) {
  thread.next = first;
  first = &thread;
  if (last == nullptr) last = &thread;
}

void Block::add(Thread& thread, Line& line) {
  switch (order_) {
    case Order::forward: return line.append(thread);
    case Order::reverse: return line.prepend(thread);
    case Order::random: batch_.push_back(&thread);
  }
}

Block::Line Block::shuffled_batch() {
  Line line;
  for (std::size_t i = batch_.size(); i > 1; --i) std::swap(batch_[i - 1], batch_[random() % i]);
  for (Thread* const thread : batch_) line.append(*thread);
  batch_.clear();
  return line;
}

void Block::queue(Line line, bool in_front) {
  if (order_ == Order::random) line = shuffled_batch();
  if (line.first == nullptr) return;
  line.last->next = in_front ? head_ : nullptr;
  if (in_front && head_ != nullptr) {
    head_ = line.first;
    return;
  }
  (head_ == nullptr ? head_ : tail_->next) = line.first;
  tail_ = line.last;
}

Thread* Block::next_ready() {
  Thread* const next = head_;
  if (next != nullptr) head_ = next->next;
  return next;
}

void* Block::static_shared(const SharedSite& site) {
  void* const array = shared_.find_or_add(site);
  if (array == nullptr) fail(ErrorKind::launch_limits, shared_.why_full(site));
  return array;
}

// The running thread waits until its state is ready and its turn has come.
void Block::wait() {
  Thread& self = running();
  Thread* const next = next_ready();
  if (next == &self) return;
  if (next == nullptr) fail_deadlock();
  if (next->fiber == nullptr) next->fiber = &pool_.take();
  if (head_ != nullptr && head_->fiber != nullptr) head_->fiber->expect_switch();
  current = next;
  Fiber::switch_to(*self.fiber, *next->fiber);
}

std::uint64_t all_lanes() { return running_block().all_lanes(); }

void block_sync(const Site& site) { running_block().sync(site); }

std::uint64_t wave_operation(WaveKind kind, std::uint64_t mask, std::uint64_t value,
                             int source_lane, const Site& site) {
  return running_block().wave_operation(kind, mask, value, source_lane, site);
}

void* static_shared(const SharedSite& site) { return running_block().static_shared(site); }
void* dynamic_shared() { return running_block().dynamic_shared(); }

}  // namespace plumb::device::sim
