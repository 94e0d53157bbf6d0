// SPDX-License-Identifier: Apache-2.0
//
// One signal handler per process and one handler stack per host thread. The handler jumps to the
// innermost watched operation of the thread that faulted.
#include "device/sim/memory/page_fault.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cfenv>
#include <mutex>

#include "device/filler.h"
#include "device/sim/memory/guard.h"

namespace plumb::device::sim {

namespace {

constexpr std::uintptr_t kNearNull = 64 << 10;
constexpr std::size_t kHandlerStackBytes = 64 << 10;

struct Watch {
  sigjmp_buf out;
  const Memory* memories[2];
  PageFault fault;
};

constinit thread_local Watch* watching = nullptr;
// A bad access is a SIGSEGV, but a SIGBUS on x86 if the address cannot exist and the register of
// the stack or of the frame is its base.
constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction previous_actions[2];
std::atomic<void (*)()> abandoned_hook = nullptr;

std::uint16_t filler_of(std::uintptr_t address) {
  for (const unsigned word : {kGoneParameter * 0x101U, kHugePoison * 0x101U, unsigned{kFreshPoison},
                              unsigned{kPinnedPoison}, unsigned{kFreedPoison}}) {
    if (address >> 32 == word * 0x10001U) return static_cast<std::uint16_t>(word);
  }
  return 0;
}

// The system does not tell a wild address, but a register holds it or the base that it came from.
std::uint16_t filler_in_registers([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  for (int i = REG_R8; i < REG_RSP; ++i) {
    const std::uint16_t filler = filler_of(static_cast<std::uintptr_t>(registers[i]));
    if (filler != 0) return filler;
  }
#endif
  return 0;
}

void classify(const siginfo_t& info, const void* context, const Watch& watch, PageFault& fault) {
  fault.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  // x86 reports an address that cannot exist (poison used as a pointer) as zero, with SI_KERNEL.
  fault.kind = info.si_code == SI_KERNEL ? PageFault::Place::wild : PageFault::Place::null;
  if (fault.kind == PageFault::Place::wild) fault.filler = filler_in_registers(context);
  if (fault.kind == PageFault::Place::wild || fault.address < kNearNull) return;
  fault.kind = PageFault::Place::stray;
  if (is_below_simulated_stack(fault.address)) fault.kind = PageFault::Place::stack;
  for (const Memory* memory : watch.memories) {
    if (!memory->owns(info.si_addr)) continue;
    fault.kind = PageFault::Place::memory;
    fault.memory = memory;
  }
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous_action = previous_actions[signal == kSignals[0] ? 0 : 1];
  if (previous_action.sa_flags & SA_SIGINFO) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
    // On return the access is tried again, and then ends the process.
    ::signal(signal, SIG_DFL);
  } else {
    previous_action.sa_handler(signal);
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  Watch* watch = watching;
  if (watch == nullptr) return pass_on(signal, info, context);
  classify(*info, context, *watch, watch->fault);
  begin_abandoning_grid();
  siglongjmp(watch->out, 1);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &previous_actions[i]);
  });
}

// The stack that faulted may be a fiber's and nearly full, so the handler has one of its own.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t present = {};
    sigaltstack(nullptr, &present);
    if ((present.ss_flags & SS_DISABLE) == 0) return;
    void* memory = mmap(nullptr, kHandlerStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_.ss_sp = memory;
    stack_.ss_size = kHandlerStackBytes;
    sigaltstack(&stack_, nullptr);
  }
  ~HandlerStack() {
    if (stack_.ss_sp == nullptr) return;
    stack_t off = {};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
    munmap(stack_.ss_sp, kHandlerStackBytes);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  stack_t stack_ = {};
};

class Watching {
 public:
  explicit Watching(Watch& watch) : outer_(watching) { watching = &watch; }
  ~Watching() { watching = outer_; }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  Watch* outer_;
};

}  // namespace

std::optional<PageFault> run_watching(const Memory& memory, const Memory& pinned,
                                      const std::function<void()>& body) {
  install_handler();
  static thread_local const HandlerStack stack;
  Watch watch = {};
  watch.memories[0] = &memory;
  watch.memories[1] = &pinned;
  const Watching scope(watch);
  // A long jump does not restore the rounding mode and the traps, which the operation may have set.
  std::fenv_t float_environment;
  std::fegetenv(&float_environment);
  if (sigsetjmp(watch.out, 1) != 0) {
    std::fesetenv(&float_environment);
    if (void (*const hook)() = abandoned_hook.load()) hook();
    return watch.fault;
  }
  body();
  return std::nullopt;
}

void on_abandoned(void (*abandoned)()) { abandoned_hook = abandoned; }

}  // namespace plumb::device::sim
