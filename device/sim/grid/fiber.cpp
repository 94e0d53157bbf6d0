// SPDX-License-Identifier: Apache-2.0
//
// Stacks from mmap with a guard page below, switches by Boost.Context, sanitizer annotations.
#include "device/sim/grid/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace plumb::device::sim {

namespace {

using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Stacks that start at equal offsets within a page fight for the same cache sets: spread them.
std::size_t colour(int index) { return static_cast<std::size_t>(index % 16) * 192; }

}  // namespace

Fiber::Fiber(int index, Entry entry) : entry_(entry) {
  const std::size_t guard = page_bytes();
  const std::size_t total = guard + kFiberStackBytes + page_bytes();
  void* mapping = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  mprotect(mapping_, guard, PROT_NONE);
  top_ = mapping_ + total - colour(index);
  bottom_ = mapping_ + guard;
  bytes_ = static_cast<std::size_t>(top_ - static_cast<const std::byte*>(bottom_));
  restart();
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;  // the host thread's own
  sanitizers::destroy_fiber(tsan_fiber_);
  sanitizers::unpoison(bottom_, bytes_);
  munmap(mapping_, page_bytes() + kFiberStackBytes + page_bytes());
}

void Fiber::restart() {
  sanitizers::unpoison(bottom_, bytes_);
  sanitizers::destroy_fiber(tsan_fiber_);
  tsan_fiber_ = sanitizers::create_fiber();
  fake_stack_ = nullptr;
  context_ = make_fcontext(top_, bytes_, &Fiber::start);
}

void Fiber::adopt_host_thread() { tsan_fiber_ = sanitizers::host_fiber(); }

void Fiber::begin_jump(const Fiber& to) {
  sanitizers::start_switch(nullptr, to.bottom_, to.bytes_, to.tsan_fiber_);
}

void Fiber::finish_jump(const Fiber& to) {
  sanitizers::finish_switch(to.fake_stack_, nullptr, nullptr);
}

void Fiber::start(transfer_t transfer) {
  Fiber& self = *static_cast<Fiber**>(transfer.data)[1];
  self.arrive(transfer);
  self.entry_(self);
}

bool Fiber::guards(const void* address) const { return address >= mapping_ && address < bottom_; }

Fiber& FiberPool::take() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(static_cast<int>(fibers_.size()), entry_));
    return *fibers_.back();
  }
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

void FiberPool::abandon_all() {
  idle_.clear();
  for (auto& fiber : fibers_) {
    fiber->restart();
    idle_.push_back(fiber.get());
  }
}

}  // namespace plumb::device::sim
