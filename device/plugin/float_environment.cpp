// SPDX-License-Identifier: Apache-2.0
#include "device/plugin/float_environment.h"

#include <fmt/format.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

namespace plumb::device {

namespace {

constexpr unsigned kFlushResults = 0x8000, kFlushOperands = 0x0040;  // bits of MXCSR

std::mutex notes_mutex;
std::vector<std::string>& notes() {
  static std::vector<std::string> all;
  return all;
}

unsigned control_word() {
#if defined(__SSE__)
  return _mm_getcsr();
#else
  return 0;
#endif
}

const char* name_of_rounding(int mode) {
  switch (mode) {
    case FE_TONEAREST: return "to nearest";
    case FE_UPWARD: return "upward";
    case FE_DOWNWARD: return "downward";
    case FE_TOWARDZERO: return "toward zero";
    default: return "unknown";
  }
}

std::uint16_t x87_word() {
#if defined(__SSE__)
  std::uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
#else
  return 0;
#endif
}

// Float arithmetic uses SSE, whose rounding mode is in MXCSR. fegetround reads only the x87 unit's.
int rounding_mode() {
#if defined(__SSE__)
  constexpr int kModes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  return kModes[_mm_getcsr() >> 13 & 3];
#else
  return std::fegetround();
#endif
}

int enabled_traps() {
#if defined(__SSE__)
  // fegetexcept waits for pending x87 exceptions, and would itself trap.
  constexpr unsigned kAll = 0x3f;
  return static_cast<int>(((~_mm_getcsr() >> 7) & kAll) << 6 | (~unsigned{x87_word()} & kAll));
#elif defined(__GLIBC__)
  return fegetexcept();
#else
  return 0;
#endif
}

}  // namespace

KeptFloatEnvironment::Modes KeptFloatEnvironment::modes() {
  const unsigned word = control_word();
  return {rounding_mode(), enabled_traps(), x87_word() & 0xf00, (word & kFlushResults) != 0,
          (word & kFlushOperands) != 0};
}

KeptFloatEnvironment::KeptFloatEnvironment(std::string who)
    : who_(std::move(who)), before_(modes()) {
  std::fegetenv(&saved_);
}

KeptFloatEnvironment::~KeptFloatEnvironment() {
  const Modes after = modes();
  if (after == before_) return;
  std::fesetenv(&saved_);
  note(after);
}

void KeptFloatEnvironment::note(const Modes& changed) const {
  const auto add = [&](const std::string& what) {
    const std::string line = fmt::format("{} {} and did not restore it", who_, what);
    const std::lock_guard lock(notes_mutex);
    if (std::find(notes().begin(), notes().end(), line) == notes().end()) notes().push_back(line);
  };
  if (changed.rounding != before_.rounding) {
    add(fmt::format("changed the rounding mode to {}", name_of_rounding(changed.rounding)));
  }
  if (changed.x87 != before_.x87 && changed.rounding == before_.rounding) {
    add("changed rounding or precision of the x87 unit");
  }
  if (changed.flushes_results != before_.flushes_results) add("changed flush to zero of results");
  if (changed.flushes_operands != before_.flushes_operands) {
    add("changed flush to zero of operands");
  }
  if (changed.traps != before_.traps) add("changed the traps of floating-point exceptions");
}

std::vector<std::string> take_float_notes() {
  const std::lock_guard lock(notes_mutex);
  return std::exchange(notes(), {});
}

}  // namespace plumb::device
