// SPDX-License-Identifier: Apache-2.0
//
// Stacks from mmap with a guard page below, switches, sanitizer annotations.
//
// On x86-64 the switch is plumb's own. Other processors use Boost.Context, which also saves and
// restores the control words of the floating-point units. No kernel changes these words, and
// reading them waits for all floating-point work in progress: in kernels that took up to a fifth of
// the time.
#include "device/sim/grid/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if !defined(__x86_64__) || defined(PLUMB_BOOST_FIBERS)
#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#endif

namespace plumb::device::sim {

extern "C" void plumb_start_stack();

namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Stacks that start at equal offsets within a page compete for the same cache sets. So their starts
// are spread over offsets.
std::size_t colour(int index) { return static_cast<std::size_t>(index % 16) * 192; }

#if defined(__x86_64__) && !defined(PLUMB_BOOST_FIBERS)

// Contents of a fresh stack, as plumb_switch_stacks pops them: six registers, of which rbx has the
// function, and the return address.
void* make_stack(std::byte* top, std::size_t, void (*function)(void*)) {
  const std::uintptr_t aligned = reinterpret_cast<std::uintptr_t>(top) / 16 * 16;
  auto* const end = reinterpret_cast<void**>(aligned);
  end[-1] = reinterpret_cast<void*>(&plumb_start_stack);
  for (int saved = -7; saved < -1; ++saved) end[saved] = nullptr;
  end[-3] = reinterpret_cast<void*>(function);
  return end - 7;
}

#else

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

struct Switch {
  void** from;
  void* argument;
};

void* note_left(const transfer_t& transfer) {
  const Switch& one = *static_cast<const Switch*>(transfer.data);
  *one.from = transfer.fctx;
  return one.argument;
}

// All stacks start with the same function, so it is stored once.
std::atomic<void (*)(void*)> start_of_stacks = nullptr;

void start_stack(transfer_t transfer) { start_of_stacks(note_left(transfer)); }

void* make_stack(std::byte* top, std::size_t bytes, void (*function)(void*)) {
  start_of_stacks = function;
  return make_fcontext(top, bytes, &start_stack);
}

#endif

}  // namespace

#if defined(__x86_64__) && !defined(PLUMB_BOOST_FIBERS)
asm(R"(
  .text
  .globl plumb_switch_stacks
  .type plumb_switch_stacks, @function
plumb_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  movq %rdx, %rdi
  ret
  .size plumb_switch_stacks, .-plumb_switch_stacks

  .globl plumb_start_stack
  .type plumb_start_stack, @function
plumb_start_stack:
  .cfi_startproc
  .cfi_undefined rip
  call *%rbx
  ud2
  .cfi_endproc
  .size plumb_start_stack, .-plumb_start_stack
)");
#else
extern "C" void plumb_switch_stacks(void** from, void* to, void* argument) {
  Switch one{from, argument};
  note_left(jump_fcontext(to, &one));
}
#endif

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
  if (mapping_ == nullptr) return;  // this fiber is the host thread on its own stack
  sanitizers::destroy_fiber(tsan_fiber_);
  sanitizers::unpoison(bottom_, bytes_);
  munmap(mapping_, page_bytes() + kFiberStackBytes + page_bytes());
}

void Fiber::restart() {
  sanitizers::unpoison(bottom_, bytes_);
  sanitizers::destroy_fiber(tsan_fiber_);
  tsan_fiber_ = sanitizers::create_fiber();
  fake_stack_ = nullptr;
  context_ = make_stack(top_, bytes_, &Fiber::start);
}

void Fiber::adopt_host_thread() { tsan_fiber_ = sanitizers::host_fiber(); }

void Fiber::begin_jump(const Fiber& to) {
  sanitizers::start_switch(nullptr, to.bottom_, to.bytes_, to.tsan_fiber_);
}

void Fiber::finish_jump(const Fiber& to) {
  sanitizers::finish_switch(to.fake_stack_, nullptr, nullptr);
}

void Fiber::start(void* self) {
  Fiber& fiber = *static_cast<Fiber*>(self);
  fiber.arrive();
  fiber.entry_(fiber);
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
