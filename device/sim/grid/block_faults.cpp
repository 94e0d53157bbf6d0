// SPDX-License-Identifier: Apache-2.0
//
// How a block ends after an error of its kernel, and the checks that kernels call.
#include <fmt/format.h>

#include <bit>

#include "device/sim/grid/block.h"

namespace plumb::device::sim {

namespace {

constexpr int kMostListed = 4;  // most places in the message of a deadlock

}  // namespace

std::string Block::describe(const Thread& thread) const {
  return fmt::format("block ({}, {}) thread {} (wave {}, lane {})", block_x, block_y, thread.thread,
                     thread.wave, thread.lane);
}

// Progress of a thread: "before any barrier", "after k.cu:12", "waiting in ballot at k.cu:14".
std::string Block::describe_progress(const Thread& thread) const {
  if (thread.state == Thread::ThreadState::returned) return "returned";
  if (thread.site.line() == 0) return "before any barrier";
  const std::string site = name_of_site(thread.site);
  if (thread.state == Thread::ThreadState::in_block_sync) return "waiting in block_sync at " + site;
  const Wave::Operation* const operation = waves_[thread.wave].waiting_operation(thread.lane);
  if (operation != nullptr)
    return fmt::format("waiting in {} at {}", name_of(operation->kind), site);
  return "after " + site;
}

void Block::fail(ErrorKind fault, std::string&& message) {
  message = fmt::format("{}: {}", describe(running()), message);
  drop_stack(fault, std::move(message));
}

void Block::drop_stack(ErrorKind fault, std::string&& message) {
  fault_ = fault;
  error_ = fmt::format("kernel {}: {}", kernel(), message);
  std::string().swap(message);
  Fiber::switch_to(*running().fiber, host_);
  std::terminate();
}

std::string Block::describe_awaited(const Wave::Operation& operation) const {
  return fmt::format("it has returned, but lanes {} of the wave wait for it in {} at {}",
                     lane_list(operation.arrived), name_of(operation.kind),
                     name_of_site(operation.site));
}

std::string Block::describe_divergence(const Site& site) const {
  return fmt::format("block_sync at {}, but {} waits in block_sync at {}", name_of_site(site),
                     describe(*first_arrived_), name_of_site(first_arrived_->site));
}

void Block::fail_wave_call(const WaveCall& call) {
  ErrorKind fault = ErrorKind::other;
  std::string message = waves_[running().wave].why_illegal(call, fault);
  fail(fault, std::move(message));
}

void Block::fail_deadlock() { drop_stack(ErrorKind::deadlock, describe_deadlock()); }

std::string Block::describe_deadlock() const {
  std::string text = fmt::format("block ({}, {}): no thread can go on", block_x, block_y);
  int groups = 0;
  std::vector<bool> told(threads_.size(), false);
  for (const Thread& thread : threads_) {
    if (thread.state == Thread::ThreadState::returned || told[thread.thread]) continue;
    if (++groups > kMostListed) return text + "; and other threads at other places";
    int count = 0;
    for (const Thread& other : threads_)
      if (other.state == thread.state && same_line(other.site, thread.site)) {
        told[other.thread] = true;
        ++count;
      }
    text += fmt::format("; {} thread{} (the first is {}) {}", count, count == 1 ? "" : "s",
                        thread.thread, describe_progress(thread));
    const Wave::Operation* const operation = waves_[thread.wave].waiting_operation(thread.lane);
    if (operation != nullptr)
      text += fmt::format(" for lanes {}", lane_list(operation->mask & ~operation->arrived));
  }
  return text;
}

void refuse_width(int width, const Site& site) {
  std::string message =
      fmt::format("shuffle at {} with width {}: a power of two up to {} is needed",
                  name_of_site(site), width, running_block().wave_size);
  running_block().fail(ErrorKind::invalid_argument, std::move(message));
}

void refuse_alignment(const void* address, int bytes, const Site& site) {
  std::string message = fmt::format(
      "{0} bytes at once at {1}: the address is {2} bytes past a multiple of {0}", bytes,
      name_of_site(site), reinterpret_cast<std::uintptr_t>(address) % static_cast<unsigned>(bytes));
  running_block().fail(ErrorKind::invalid_argument, std::move(message));
}

}  // namespace plumb::device::sim
