// SPDX-License-Identifier: Apache-2.0
//
// Tells the address and thread sanitizers about fiber switches. Does nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLUMB_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define PLUMB_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PLUMB_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define PLUMB_THREAD_SANITIZER 1
#endif

#ifdef PLUMB_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef PLUMB_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace plumb::device::sim::sanitizers {

#if defined(PLUMB_ADDRESS_SANITIZER) || defined(PLUMB_THREAD_SANITIZER)
constexpr bool kActive = true;
#else
constexpr bool kActive = false;
#endif

inline void start_switch([[maybe_unused]] void** fake_stack_save,
                         [[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t bytes,
                         [[maybe_unused]] void* tsan_fiber) {
#ifdef PLUMB_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake_stack_save, bottom, bytes);
#endif
#ifdef PLUMB_THREAD_SANITIZER
  __tsan_switch_to_fiber(tsan_fiber, 0);
#endif
}

inline void finish_switch([[maybe_unused]] void* fake_stack,
                          [[maybe_unused]] const void** previous_bottom,
                          [[maybe_unused]] std::size_t* previous_bytes) {
#ifdef PLUMB_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, previous_bottom, previous_bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef PLUMB_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

inline void* create_fiber() {
#ifdef PLUMB_THREAD_SANITIZER
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}

inline void destroy_fiber([[maybe_unused]] void* fiber) {
#ifdef PLUMB_THREAD_SANITIZER
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
#endif
}

inline void* host_fiber() {
#ifdef PLUMB_THREAD_SANITIZER
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

}  // namespace plumb::device::sim::sanitizers
